"""A queue whose changes go to a topic, on an engine with time in the hands of the test."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from queueber.db.records.blocks import unpack_attributes
from queueber.engine.queue.add import add
from queueber.engine.queue.poll import poll
from queueber.engine.queue.queue_state import QueueState, QueueTx
from queueber.engine.topics.read import read
from queueber.engine.topics.topic_state import TopicState
from queueber.limits import MIB
from queueber.model import (
    Added,
    Bounds,
    EventPayload,
    NewItems,
    On,
    Polled,
    QueueSettings,
    Source,
    TopicSettings,
)
from tests.support.topic_rig import TopicRig

QUEUE = "q"


class Event(NamedTuple):
    change: str
    id: bytes
    payload: Any
    """Parsed, unless it is the contents."""
    key: str
    attributes: dict[str, str]


class RouteRig(TopicRig):
    def __init__(
        self,
        settings: QueueSettings | None = None,
        *,
        partitions: int = 1,
        topic: TopicSettings | None = None,
    ) -> None:
        super().__init__(topic, partitions=partitions)
        self.run(self.queues.create, QUEUE, settings or QueueSettings())

    @property
    def queue(self) -> QueueState:
        return self.queues.get(QUEUE)

    def route(
        self,
        *ons: On,
        where: str = "",
        partition_by: str = "",
        payload: EventPayload = EventPayload.KEY,
        topic: TopicState | None = None,
    ) -> None:
        for on in ons or tuple(On):
            source = Source(QUEUE, on, where, partition_by, payload)
            assert self.run(self.engine.routes.add, topic or self.topic, source)

    def add(self, *contents: bytes, **columns: Any) -> Added:
        return self.run_on(self.queue, add, NewItems(contents, **columns))

    def lease(self, count: int = 1, *, lease_ms: int = 1000) -> Polled:
        def operation(tx: QueueTx) -> list[Polled]:
            return poll(tx, [count], lease_ms=lease_ms, answer_bytes_max=MIB)

        return self.run_on(self.queue, operation)[0]

    def events(self, partition: int = 0, topic: TopicState | None = None) -> list[Event]:
        of, found = topic or self.topic, []
        at = of.first_offset(partition)
        while at < of.next_offset(partition):
            page = read(self.store, of, partition, at, Bounds(1000, MIB))
            for packed in page.packed:
                found += [
                    _event(payload, key.decode(), unpack_attributes(own))
                    for payload, key, own in zip(
                        packed.split(), packed.keys, packed.attributes, strict=True
                    )
                ]
            at = page.next_offset
        return found

    def changes(self) -> list[tuple[str, bytes]]:
        return [(each.change, each.id) for each in self.events()]

    def words(self) -> list[str]:
        return [each.change for each in self.events()]


def _event(payload: bytes, key: str, attributes: dict[str, str]) -> Event:
    kind = attributes["queueber.payload"]
    said = payload if kind == "full" else json.loads(payload)
    item_id = bytes.fromhex(attributes["queueber.id"])
    return Event(attributes["queueber.change"], item_id, said, key, attributes)


def of(change: str, ids: Sequence[bytes]) -> list[tuple[str, bytes]]:
    """The events of items that change alike."""
    return [(change, each) for each in ids]
