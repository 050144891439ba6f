"""Add: store items, ready at once or after a delay of their own."""

from collections.abc import Sequence

from queueber.db.families import Family
from queueber.db.keys import PREFIX_BYTES, time_part
from queueber.db.records import decode_size, encode_item, encode_size
from queueber.engine.state import Engine, QueueState
from queueber.errors import ResourceExhausted


def add(
    engine: Engine,
    queue: QueueState,
    contents: Sequence[bytes],
    delays_ms: Sequence[int],
    now_ms: int,
) -> list[bytes]:
    """Store all of the items, or none, and return their ids in order.

    `delays_ms` is empty when no item is delayed, and else has one for each.
    """
    sizes = [len(each) for each in contents]
    _check_room(queue, sizes)

    ids = engine.ids.mint(len(contents), now_ms)
    prefix = queue.prefix
    ready_head = prefix + time_part(now_ms)
    size_values = map(encode_size, sizes)
    if any(delays_ms):
        ready, delayed = [], []
        for item_id, size, delay_ms in zip(ids, size_values, delays_ms, strict=True):
            if delay_ms:
                delayed.append((prefix + time_part(now_ms + delay_ms) + item_id, size))
            else:
                ready.append((ready_head + item_id, size))
    else:
        ready, delayed = [(ready_head + i, s) for i, s in zip(ids, size_values, strict=True)], []

    change = engine.change(queue)
    change.batch.put_many(
        Family.ITEMS, [(prefix + i, encode_item(c)) for i, c in zip(ids, contents, strict=True)]
    )
    counters = change.counters
    counters.contents_bytes += sum(sizes)
    counters.added_total += len(ids)
    counters.last_id = ids[-1]
    if ready:
        change.batch.put_many(Family.VISIBILITY_INDEX, ready)
        counters.ready += len(ready)
        # I6, when the clock stepped back.
        counters.ready_low = min(counters.ready_low, ready[0][0][PREFIX_BYTES:])
    if delayed:
        change.batch.put_many(Family.DELAYED, delayed)
        counters.delayed += len(delayed)
        first_due_ms = now_ms + min(delay_ms for delay_ms in delays_ms if delay_ms)
        counters.delayed_due_ms = min(counters.delayed_due_ms, first_due_ms)
    change.commit()

    if ready:
        queue.window.insert([(key[PREFIX_BYTES:], decode_size(size)) for key, size in ready])
    if delayed:
        engine.agenda.schedule(queue.queue_id, first_due_ms)
    return ids


def _check_room(queue: QueueState, sizes: list[int]) -> None:
    settings, counters = queue.settings, queue.counters
    if settings.item_bytes_max and max(sizes) > settings.item_bytes_max:
        raise ResourceExhausted(
            f"contents: an item has {max(sizes)} bytes; the limit of queue {queue.name!r} "
            f"is {settings.item_bytes_max}"
        )
    held = counters.ready + counters.delayed + counters.in_progress
    if settings.items_max and held + len(sizes) > settings.items_max:
        raise ResourceExhausted(
            f"queue {queue.name!r} holds {held} items; {len(sizes)} more would pass its limit of "
            f"{settings.items_max}"
        )
    if settings.bytes_max and counters.contents_bytes + sum(sizes) > settings.bytes_max:
        raise ResourceExhausted(
            f"queue {queue.name!r} holds {counters.contents_bytes} bytes; {sum(sizes)} more would "
            f"pass its limit of {settings.bytes_max}"
        )
