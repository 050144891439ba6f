"""A sound store with topics of every kind in it, to be damaged by hand."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from faults.simulation.disk import Disk, no_families
from faults.simulation.memory_store import MemoryStore
from queueber.db.families import Family
from queueber.db.records.keys import queue_prefix
from queueber.db.records.log import (
    LogHead,
    block_key,
    decode_log_head,
    encode_log_head,
)
from queueber.db.records.topics import TopicRecord, agenda_key, decode_topic, encode_topic
from queueber.engine.integrity.check_store import check_store
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.open import Engine, open_engine
from queueber.engine.queue.fail import fail
from queueber.engine.queue.poll import poll
from queueber.engine.queue.release import release
from queueber.engine.queue.remove import remove
from queueber.engine.topics.forks import fork
from queueber.engine.topics.groups import acknowledge, create_group
from queueber.engine.topics.publish import publish
from queueber.engine.topics.sweep import sweep
from queueber.engine.topics.topic_state import TopicState
from queueber.engine.topics.trim import trim_topic
from queueber.ids import IdSource
from queueber.limits import HOUR_MS, MIB, MINUTE_MS
from queueber.model import (
    ForkAt,
    GroupKind,
    GroupSettings,
    NewMessages,
    Polled,
    Position,
    Producer,
    Publication,
    QueueSettings,
    Start,
    TopicConfig,
    TopicSettings,
)

START_MS = 1_700_000_000_000


class TopicDamage:
    """Topics `plain`, `keyed`, `parent` and its fork `child`, `short` and the deleted `gone`."""

    def __init__(self) -> None:
        self.store = MemoryStore(Disk(no_families()))
        self.now_ms = START_MS
        self.engine: Engine = open_engine(self.store, IdSource(Random(1)))
        self._make_plain()
        self._make_keyed()
        self._make_forks()
        self._create("short", TopicSettings(ttl_ms=HOUR_MS))
        self._create("gone", TopicSettings())
        self._publish("gone", ["a"])
        tx = self.tx()
        self.engine.topics.delete(tx, self.topic("gone"))
        tx.commit()
        assert check_store(self.store) == []
        self.batch = self.store.batch()

    def tx(self) -> Transaction[None]:
        return Transaction(self.engine.kernel, self.now_ms, None)

    def topic(self, name: str) -> TopicState:
        return self.engine.topics.get(name, self.now_ms)

    def _create(self, name: str, settings: TopicSettings, **more: Any) -> None:
        tx = self.tx()
        self.engine.topics.create(tx, name, settings, **more)
        tx.commit()

    def _publish(self, name: str, payloads: list[str], **more: Any) -> None:
        self.now_ms += 1
        columns = {each: more.pop(each) for each in ("keys", "dedup_ids") if each in more}
        messages = NewMessages([each.encode() for each in payloads], **columns)
        tx = self.tx()
        publish(tx, self.engine.topics, [(self.topic(name), Publication(name, messages, **more))])
        tx.commit()

    def _make_plain(self) -> None:
        """Partition 0 has offsets 1 to 5, in blocks of two; partition 1 has one message."""
        settings = TopicSettings(retention_ms=HOUR_MS)
        self._create("plain", settings, partitions=2, alias="other name")
        self._publish("plain", ["a", "b"], partition=0, producer=Producer("p", 1, 1))
        self._publish("plain", ["c", "d"], partition=0, dedup_ids=["1", "2"])
        self._publish("plain", ["e", "f"], partition=0)
        self._publish("plain", ["g"], partition=1)
        tx = self.tx()
        trim_topic(tx, self.topic("plain"), 0, Position(Start.OFFSET, 1))
        tx.commit()
        for name, kind in (("g", GroupKind.ORDERED), ("shared", GroupKind.SHARED)):
            tx = self.tx()
            topic = self.topic("plain")
            given = GroupSettings(kind, leases=QueueSettings(attempts_max=1))
            create_group(tx, self.engine.topics, topic, name, given, Position())
            tx.commit()
        tx = self.tx()
        acknowledge(tx, topic, topic.groups["g"], 0, 3)
        tx.commit()
        self._work()

    def _work(self) -> None:
        """Of the shared group three messages are dead, ready and leased, and one is done."""
        queue = self.topic("plain").groups["shared"].queue

        def polled(count: int) -> Polled:
            tx = Transaction(self.engine.kernel, self.now_ms, queue)
            [found] = poll(tx, [count], lease_ms=HOUR_MS, answer_bytes_max=MIB)
            tx.commit()
            return found

        def run(verb: Callable[..., object], *arguments: Any) -> None:
            tx = Transaction(self.engine.kernel, self.now_ms, queue)
            verb(tx, *arguments)
            tx.commit()

        first, others = polled(1), polled(3)
        lease = [others.lease_id]
        run(fail, first.ids, [first.lease_id], [""], [5])
        run(release, others.ids[:1], lease)
        run(remove, others.ids[1:2], lease)
        counters = queue.counters
        assert (counters.dead, counters.ready, counters.leased) == (1, 1, 1)

    def _make_keyed(self) -> None:
        """Message 0 was replaced and is gone, 1 is replaced, 2 and 3 are the last of their keys,
        and 3 is a tombstone."""
        self._create("keyed", TopicSettings(keeps_last_per_key=True))
        self._publish("keyed", ["a"], keys=["x"])
        self._publish("keyed", ["b"], keys=["x"])
        self.now_ms += 2 * MINUTE_MS
        engine = self.engine
        while sweep(engine.kernel, engine.queues, engine.topics, self.now_ms) is not None:
            pass
        self._publish("keyed", ["c", ""], keys=["x", "y"])

    def _make_forks(self) -> None:
        """Messages 0 to 3, of which the fork shares 0 to 2; and it has one more."""
        self._create("parent", TopicSettings())
        self._publish("parent", ["a", "b"])
        self._publish("parent", ["c", "d"])
        tx = self.tx()
        fork(tx, self.engine.topics, self.topic("parent"), "child", TopicConfig(), ForkAt(0, 3))
        tx.commit()
        self._publish("child", ["e"])

    # --- changes ----------------------------------------------------------------------------------

    def prefix(self, name: str) -> bytes:
        if name == "gone":
            return next(each.prefix for each in self.engine.topics if each.name == name)
        return self.topic(name).prefix

    def log(self, name: str, partition: int = 0) -> bytes:
        return queue_prefix(self.record(name).logs[partition])

    def record(self, name: str) -> TopicRecord:
        return decode_topic(self.store.get(Family.TOPICS, self.prefix(name)) or b"")

    def change(self, name: str, **fields: Any) -> None:
        record = self.record(name)._replace(**fields)
        self.batch.put(Family.TOPICS, self.prefix(name), encode_topic(record))

    def change_head(self, name: str, **fields: Any) -> None:
        head: LogHead = decode_log_head(self.store.get(Family.LOGS, self.log(name)) or b"")
        changed = encode_log_head(head._replace(**fields))
        self.batch.put(Family.LOGS, self.log(name), changed)

    def block(self, name: str, last_offset: int) -> bytes:
        key = block_key(self.log(name), last_offset)
        return self.store.get(Family.LOG_BLOCKS, key) or b""

    def put_block(self, name: str, last_offset: int, value: bytes) -> None:
        self.batch.put(Family.LOG_BLOCKS, block_key(self.log(name), last_offset), value)

    def delete_block(self, name: str, last_offset: int) -> None:
        self.batch.delete(Family.LOG_BLOCKS, block_key(self.log(name), last_offset))

    def forget_noted(self, name: str) -> None:
        """Both entries of the agenda."""
        number = int.from_bytes(self.prefix(name))
        for key, _ in self.store.walk(Family.AGENDA, b"", b"\xff"):
            if key == agenda_key(number) or key[9:] == self.prefix(name):
                self.batch.delete(Family.AGENDA, key)

    def write(self) -> None:
        self.store.write(self.batch)
        self.batch = self.store.batch()


@dataclass(frozen=True)
class TopicCase:
    """Damage, and the rules that report it: the one that it breaks, and those it breaks too."""

    rule: str
    text: str
    damage: Callable[[TopicDamage], object]
    also: set[str] = field(default_factory=set)

    @property
    def name(self) -> str:
        return f"{self.rule}: {self.text}"

    def rules_found(self) -> set[str]:
        damage = TopicDamage()
        self.damage(damage)
        damage.write()
        return {violation.rule for violation in check_store(damage.store)}
