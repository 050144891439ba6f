"""Quota: the limits of a queue's settings on what is added."""

from collections.abc import Sequence

from queueber.engine.queue.queue_state import QueueState
from queueber.errors import ResourceExhausted


def check_contents(queue: QueueState, contents: Sequence[bytes]) -> None:
    limit = queue.settings.item_bytes_max
    if limit and max(map(len, contents)) > limit:
        raise ResourceExhausted(
            f"contents: an item has {max(map(len, contents))} bytes; the limit of queue "
            f"{queue.name!r} is {limit}"
        )


def check_quota(queue: QueueState, items: int, size: int) -> None:
    """`items` and `size` are the number and bytes of the items to be added."""
    settings, counters = queue.settings, queue.counters
    if settings.items_max and counters.items + items > settings.items_max:
        raise ResourceExhausted(
            f"queue {queue.name!r} holds {counters.items} items; {items} more would pass its "
            f"limit of {settings.items_max}"
        )
    if settings.bytes_max and counters.contents_bytes + size > settings.bytes_max:
        raise ResourceExhausted(
            f"queue {queue.name!r} holds {counters.contents_bytes} bytes; {size} more would "
            f"pass its limit of {settings.bytes_max}"
        )
