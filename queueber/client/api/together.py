# Generated from async_together.py by scripts/generate_blocking.py; edit that file instead.
"""Steps over topics and queues that all happen, or none: consume, transform and produce."""

from collections.abc import Iterable
from typing import Self, Unpack

from queueber.client.api.item import Item, held_by
from queueber.client.api.subscription import Received
from queueber.client.arguments import values
from queueber.client.arguments.new_items import AddOptions, to_new_items
from queueber.client.arguments.new_messages import (
    AnyMessages,
    PublishOptions,
    to_partition,
    to_publication,
)
from queueber.client.arguments.topic_names import to_group_name, to_topic_name
from queueber.client.arguments.values import Contents, Error, Id, Seconds
from queueber.client.calls.adds import joined
from queueber.client.calls.together import Done, Steps, take_steps
from queueber.client.transport.connection import Connection
from queueber.client.transport.futures import wait_for
from queueber.errors import InvalidArgument
from queueber.limits import DELAY_MS_MAX

_QUEUE_BACKOFF = -1


class Together:
    """Steps that are sent as one call when the `with` block ends; `Client.together`
    makes one.

    If the block raises, nothing is sent. If a lease does not hold an item or a message any more,
    another consumer has done a message of an ordered group, or a condition of a publish fails,
    nothing happens, and the end of the block raises. After a lost
    connection it raises `OutcomeUnknown`. `done` has the answers then.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._steps = Steps()
        self._is_sent = False
        self.done = Done()
        """What came of the steps, once the block has ended."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is None and not self._steps.is_empty:
            self._is_sent = True
            self.done = wait_for(take_steps(self._connection, self._steps))

    def publish(self, topic: str, messages: AnyMessages, **options: Unpack[PublishOptions]) -> None:
        """As `Topic.publish`."""
        self._open().publications.append(to_publication(topic, messages, **options))

    def ack(self, message: Received) -> None:
        """Acknowledge a message of a subscription, as `Received.ack` does."""
        if not isinstance(message, Received):
            raise InvalidArgument(f"message: {message!r} is not one of a subscription")
        steps = self._open()
        topic, group = message.topic, message.group
        if not group:
            raise InvalidArgument("message: its subscription has no group, which acknowledges")
        if message.lease:
            key = (topic, group, message.partition, message.lease)
            steps.leased.setdefault(key, []).append(message.offset)
        else:
            place = (topic, group, message.partition)
            first, end = steps.cursors.get(place, (message.offset, 0))
            steps.cursors[place] = min(first, message.offset), max(end, message.offset + 1)

    def ack_offsets(
        self,
        topic: str,
        group: str,
        offsets: Iterable[int],
        *,
        partition: int = 0,
        lease: Id | None = None,
    ) -> None:
        """As `ack`, for a program that has offsets, and the lease of a shared group, instead of a
        subscription. An ordered group is done with all messages before them, too."""
        steps = self._open()
        place = to_topic_name(topic), to_group_name(group), to_partition(partition)
        listed = [values.to_number("offsets", each, what="an offset") for each in offsets]
        if not listed:
            raise InvalidArgument("offsets: there are none; name at least one")
        if lease is not None:
            steps.leased.setdefault((*place, values.to_id("lease", lease)), []).extend(listed)
        else:
            first, end = steps.cursors.get(place, (min(listed), 0))
            steps.cursors[place] = min(first, *listed), max(end, max(listed) + 1)

    def add(self, queue: str, contents: Contents, **options: Unpack[AddOptions]) -> None:
        """As `Queue.add`, to a queue that exists. All adds to one queue have one batch."""
        items = to_new_items(contents, **options)
        if items.origin is not None:
            raise InvalidArgument("origin: items of a load are added by themselves")
        steps = self._open().of_queue(values.to_name(queue))
        if steps.added is not None and steps.added.batch != items.batch:
            raise InvalidArgument(
                f"batch: the items for queue {queue!r} have batch {steps.added.batch!r} already"
            )
        steps.added = items if steps.added is None else joined([steps.added, items])

    def complete(
        self,
        item: Item | Id,
        result: bytes = b"",
        *,
        queue: str | None = None,
        lease: Id | None = None,
    ) -> None:
        """An item of a lease is done, and `result` is kept. An id needs its `queue` and `lease`."""
        name, item_id, lease_id = _to_held(item, queue, lease)
        (kept,) = values.to_results(result, 1)
        self._open().of_queue(name).completed.append((item_id, lease_id, kept))

    def fail(
        self,
        item: Item | Id,
        error: Error,
        *,
        delay: Seconds | None = None,
        queue: str | None = None,
        lease: Id | None = None,
    ) -> None:
        """An item of a lease failed, as `Lease.fail` reports it. An id needs its `queue` and
        `lease`."""
        name, item_id, lease_id = _to_held(item, queue, lease)
        (text,) = values.to_errors(error, 1)
        delay_ms = _QUEUE_BACKOFF if delay is None else values.to_ms("delay", delay, DELAY_MS_MAX)
        self._open().of_queue(name).failed.append((item_id, lease_id, text, delay_ms))

    def _open(self) -> Steps:
        if self._is_sent:
            raise InvalidArgument("the steps are sent; begin another `together`")
        return self._steps


def _to_held(item: object, queue: str | None, lease: Id | None) -> tuple[str, bytes, bytes]:
    """The queue that has an item, its id, and the lease that holds it."""
    if queue is None and lease is None:
        name, lease_id = held_by(item)
        return name, values.to_id("item", item), lease_id
    if queue is None or lease is None:
        raise InvalidArgument("lease: give the queue and the lease of an item, both of them")
    return values.to_name(queue), values.to_id("item", item), values.to_id("lease", lease)
