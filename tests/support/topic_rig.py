"""An engine on a real store with one topic, and time in the hands of the test."""

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from queueber.db.store.rocks import RocksStore
from queueber.engine.kernel.transaction import Kernel, Transaction
from queueber.engine.queue.queue_state import QueueState
from queueber.engine.queue.queues import Queues
from queueber.engine.topics.group import Group
from queueber.engine.topics.groups import create_group
from queueber.engine.topics.publish import publish
from queueber.engine.topics.topic_state import TopicState
from queueber.engine.topics.topics import Topics
from queueber.ids import IdSource
from queueber.model import (
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
        self.kernel = Kernel(self.store, IdSource(self.random))
        self.queues = Queues(self.kernel)
        self.queues.read()
        self.topics = Topics(self.kernel, self.queues.reclaim)

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
