"""An engine on a real store with one topic, and time in the hands of the test."""

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from queueber.db.store.rocks import RocksStore
from queueber.engine.integrity.check_store import check_store
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.open import open_engine
from queueber.engine.queue.fail import fail
from queueber.engine.queue.poll import poll
from queueber.engine.queue.queue_state import QueueState, QueueTx
from queueber.engine.queue.release import release
from queueber.engine.queue.remove import remove
from queueber.engine.topics.group import Group
from queueber.engine.topics.group_ack import acknowledge_shared
from queueber.engine.topics.groups import create_group, get_group
from queueber.engine.topics.publish import publish
from queueber.engine.topics.read import read
from queueber.engine.topics.sweep import sweep
from queueber.engine.topics.topic_state import TopicState
from queueber.ids import IdSource, reference, split_reference
from queueber.limits import MIB
from queueber.model import (
    Bounds,
    FailOutcome,
    GroupKind,
    GroupSettings,
    NewMessages,
    Polled,
    Position,
    Publication,
    Published,
    QueueSettings,
    TopicSettings,
)
from tests.support.dumps import Dump, dump
from tests.support.folders import quick_folder, remove_folder

START_MS = 1_700_000_000_000
TOPIC = "t"
T = TypeVar("T")

Place = tuple[int, int]
"""Partition and offset."""


class TopicRig:
    def __init__(self, settings: TopicSettings | None = None, *, partitions: int = 1) -> None:
        self.folder: Path = quick_folder()
        self.now_ms = START_MS
        self.name = TOPIC
        """Of the topic that the operations below are about."""
        self.random = Random(1)
        self._open()
        self.run(self.topics.create, TOPIC, settings or TopicSettings(), partitions=partitions)

    def _open(self) -> None:
        self.store = RocksStore(self.folder / "data")
        self.engine = open_engine(self.store, IdSource(self.random))
        self.kernel, self.queues = self.engine.kernel, self.engine.queues
        self.topics = self.engine.topics

    def sweep(self) -> None:
        """Do all that is due now."""
        while sweep(self.kernel, self.queues, self.topics, self.now_ms) is not None:
            pass

    def read(self, partition: int = 0, start: int | None = None) -> list[tuple[int, bytes]]:
        """The offsets and payloads that a reader finds."""
        topic = self.topic
        at = topic.first_offset(partition) if start is None else start
        found: list[tuple[int, bytes]] = []
        while at < topic.next_offset(partition):
            page = read(self.store, topic, partition, at, Bounds(100, MIB))
            for packed in page.packed:
                found += enumerate(packed.split(), packed.offset)
            at = page.next_offset
        return found

    def reopen(self) -> None:
        self.store.close()
        self._open()

    def close(self) -> None:
        """Every test ends with a sound store."""
        violations = check_store(self.store)
        self.store.close()
        remove_folder(self.folder)
        assert [str(each) for each in violations] == []

    @property
    def topic(self) -> TopicState:
        return self.topics.get(self.name, self.now_ms)

    def run(self, operation: Callable[..., T], *arguments: Any, **named: Any) -> T:
        """An operation in a transaction of its own, which it gets first."""
        tx = Transaction(self.kernel, self.now_ms, None)
        done = operation(tx, *arguments, **named)
        tx.commit()
        return done

    def run_on(self, queue: QueueState, operation: Callable[..., T], *arguments: Any) -> T:
        """As `run`, in a transaction of a queue or a group that shares messages."""
        tx = Transaction(self.kernel, self.now_ms, queue)
        done = operation(tx, *arguments)
        tx.commit()
        return done

    def publish(
        self,
        *payloads: bytes,
        partition: int | None = None,
        keys: Sequence[str] = (),
        **conditions: Any,
    ) -> Published:
        publication = Publication(self.name, NewMessages(payloads, keys), partition, **conditions)
        return self.run(publish, self.topics, [(self.topic, publication)])[0]

    def create_group(
        self,
        name: str = "g",
        kind: GroupKind = GroupKind.ORDERED,
        position: Position | None = None,
        *,
        queue: str = "",
        leases: QueueSettings | None = None,
        in_flight_max: int = 0,
    ) -> Group:
        settings = GroupSettings(kind, queue, leases or QueueSettings(), in_flight_max)
        where = position or Position()
        return self.run(create_group, self.topics, self.topic, name, settings, where)[0]

    # --- of a group that shares messages ----------------------------------------------------------

    def shared(self, name: str = "g") -> QueueState:
        return get_group(self.topic, name).queue

    def poll(
        self, count: int = 1, *, name: str = "g", lease_ms: int = 1000, partition: int | None = None
    ) -> Polled:
        return self.poll_many([count], name=name, lease_ms=lease_ms, partition=partition)[0]

    def poll_many(
        self,
        counts: Sequence[int],
        *,
        name: str = "g",
        lease_ms: int = 1000,
        partition: int | None = None,
    ) -> list[Polled]:
        def operation(tx: QueueTx) -> list[Polled]:
            return poll(tx, counts, lease_ms=lease_ms, answer_bytes_max=MIB, partition=partition)

        return self.run_on(self.shared(name), operation)

    def remove(self, polled: Polled, *places: Place, name: str = "g") -> list[bool]:
        """Acknowledge messages of a poll; all of them, if none are named."""
        ids = _chosen(polled, places)
        return self.run_on(self.shared(name), remove, ids, [polled.lease_id] * len(ids))

    def ack(self, offset: int, partition: int = 0, *, name: str = "g") -> int:
        """Acknowledge all messages of a partition before an offset."""
        group = get_group(self.topic, name)
        return self.run_on(group.queue, acknowledge_shared, self.topic, group, partition, offset)

    def release(self, polled: Polled, *places: Place) -> list[bool]:
        ids = _chosen(polled, places)
        return self.run_on(self.shared(), release, ids, [polled.lease_id] * len(ids))

    def fail(
        self, polled: Polled, *places: Place, delay_ms: int | None = None
    ) -> list[FailOutcome]:
        ids = _chosen(polled, places)
        count = len(ids)
        errors, delays = ["it failed"] * count, [delay_ms] * count
        return self.run_on(self.shared(), fail, ids, [polled.lease_id] * count, errors, delays)

    def dump(self) -> Dump:
        return dump(self.store)


def places(polled: Polled) -> list[Place]:
    return [split_reference(each) for each in polled.ids]


def _chosen(polled: Polled, chosen: Sequence[Place]) -> list[bytes]:
    return [reference(*each) for each in chosen] if chosen else list(polled.ids)
