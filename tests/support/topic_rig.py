"""An engine on a real store with one topic, and time in the hands of the test."""

import struct
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from queueber.db.store.rocks import RocksStore
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.open import open_engine
from queueber.engine.queue.queue_state import QueueState
from queueber.engine.topics.group import Group
from queueber.engine.topics.groups import create_group
from queueber.engine.topics.publish import publish
from queueber.engine.topics.read import read
from queueber.engine.topics.sweep import sweep
from queueber.engine.topics.topic_state import TopicState
from queueber.ids import IdSource
from queueber.limits import MIB
from queueber.model import (
    Bounds,
    GroupKind,
    GroupSettings,
    NewMessages,
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


class TopicRig:
    def __init__(self, settings: TopicSettings | None = None, *, partitions: int = 1) -> None:
        self.folder: Path = quick_folder()
        self.now_ms = START_MS
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
                ends = struct.unpack(f"<{packed.count}I", packed.ends)
                payloads = [packed.payloads[a:b] for a, b in pairwise((0, *ends))]
                found += enumerate(payloads, packed.offset)
            at = page.next_offset
        return found

    def reopen(self) -> None:
        self.store.close()
        self._open()

    def close(self) -> None:
        self.store.close()
        remove_folder(self.folder)

    @property
    def topic(self) -> TopicState:
        return self.topics.get(TOPIC, self.now_ms)

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
        self, *payloads: bytes, partition: int | None = None, keys: Sequence[str] = ()
    ) -> Published:
        publication = Publication(TOPIC, NewMessages(payloads, keys), partition)
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

    def dump(self) -> Dump:
        return dump(self.store)
