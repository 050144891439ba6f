"""A sound store with something of every kind in it, to be damaged by hand."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from queueber.db.families import Family
from queueber.db.records.blocks import decode_leftover, encode_leftover
from queueber.db.records.keys import DUE_BYTES, Due, due_part, level_part, text_digest
from queueber.db.records.leases import decode_lease, encode_lease
from queueber.db.records.loads import LoadRecord
from queueber.db.records.log import LogHead, encode_log_head
from queueber.db.records.queues import decode_counters, encode_counters
from queueber.db.records.remembered import (
    BatchRecord,
    batch_number_part,
    decode_batch,
    encode_batch,
)
from queueber.db.records.runs import (
    Mark,
    MarkFields,
    Run,
    decode_held,
    decode_mark,
    decode_run,
    encode_held,
    encode_mark,
    encode_run,
    make_run,
)
from queueber.db.store.contract import Batch
from queueber.engine.integrity.check_store import check_store
from queueber.engine.integrity.queue_entries import QueueEntries
from queueber.engine.integrity.stored_blocks import BlockFinder
from queueber.ids import ItemId, shifted
from queueber.model import FailOutcome, LoadRef, NewItems, Part, PartRef, Producer, QueueSettings
from tests.support.loading import run_commit
from tests.support.operations import begin_load, commit_load, configure_queue, finish_part
from tests.support.rig import QUEUE, START_MS, Rig

LEVEL = 4
PLAIN = encode_mark(MarkFields())
FAILED_ONCE = encode_mark(MarkFields(attempts=1))
LOWEST_DUE = Due(bytes(DUE_BYTES))
STRANGER = ItemId(bytes(15) + b"\1")
STRANGE_RUN = make_run(STRANGER, 1, 0, 1, 2, PLAIN)
KEY = text_digest("k")
PRODUCER = text_digest("p", b"producer")
LIVE_BATCH, ENDED_BATCH, HELD_BATCH = map(batch_number_part, (1, 2, 3))
LOADED, LOAD = LoadRef("loaded"), LoadRef("under way", epoch=2)


class Damage:
    """Everything was added at `START_MS`, and the clock is 10 ms later."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.prefix = rig.queue.prefix
        self._make_ended_items()
        self.held = rig.add(b"h1", b"h2", b"h3")
        self.lease, self.other_lease = (
            polled.lease_id for polled in rig.poll_many([2, 1], lease_ms=1000)
        )
        self._make_leftovers()
        self.failed, self.moved = rig.add(b"f1", b"m1")
        polled = rig.poll(2)
        assert rig.fail([self.failed], polled.lease_id, delay_ms=0) == [FailOutcome.RETRIED]
        self.ready = rig.add(b"r1", b"r22")
        self.delayed = rig.add(b"d1", b"d2", delays_ms=[100, 200])
        # Live in its batch, with a key and attributes, of another priority.
        (self.special,) = rig.add_items(
            NewItems([b"s1"], priorities=[9], keys=["k"], attributes=[{"a": "b"}], batch="live")
        ).ids
        self._make_loads()
        rig.release([*self.partly[::2], self.partly[3], self.sparse], self.leftover_lease)
        rig.now_ms += 10
        rig.release([self.moved], polled.lease_id)
        self.batch: Batch = rig.store.batch()
        self.counters = rig.queue.counters.copy()

    def _make_ended_items(self) -> None:
        """Of batch `live` one is dead, of batch `ended` one is done; both of producer `p`."""
        rig = self.rig
        configure_queue(rig.engine, QUEUE, QueueSettings(attempts_max=1), rig.now_ms)
        producer = Producer("p", epoch=1, sequence=1)
        (self.dead,) = rig.add_items(NewItems([b"x1"], batch="live", producer=producer)).ids
        (self.done,) = rig.add_items(
            NewItems([b"y1"], batch="ended", producer=Producer("p", 1, 2))
        ).ids
        polled = rig.poll(2)
        assert rig.fail([self.dead], polled.lease_id) == [FailOutcome.DIED]
        assert rig.complete([self.done], polled.lease_id) == [True]
        configure_queue(rig.engine, QUEUE, QueueSettings(), rig.now_ms)

    def _make_leftovers(self) -> None:
        """Of one block an item is gone, of another the largest, so that it was rewritten.

        What is left will be ready. Runs: the first of `partly`, its last two, and `sparse`.
        """
        rig = self.rig
        self.partly = rig.add(b"p1", b"p22", b"p333", b"p4")
        large, self.sparse = rig.add(b"l" * 400, b"s2")
        self.leftover_lease = rig.poll(6).lease_id
        assert rig.remove([self.partly[1], large], self.leftover_lease) == [True, True]

    def _make_loads(self) -> None:
        """One is committed, and one that has two parts of 3 and 4 rows holds batch `held`."""
        engine, queue, now_ms = self.rig.engine, self.rig.queue, self.rig.now_ms
        loaded = begin_load(
            engine, queue, LOADED, batch="", timeout_ms=500, token=b"", now_ms=now_ms
        )
        assert isinstance(loaded, LoadRecord)
        run_commit(engine, commit_load(engine, queue, LOADED, [], now_ms))
        load = begin_load(
            engine, queue, LOAD, batch="held", timeout_ms=500, token=b"", now_ms=now_ms
        )
        assert isinstance(load, LoadRecord)
        self.load = load
        for partition, rows in ((0, 3), (1, 4)):
            part = Part(PartRef(partition, "a"), [], rows, 0, bytes(16), [0] * 10, rows, 0, 0)
            finish_part(engine, queue, LOAD, part, now_ms)

    # --- keys -------------------------------------------------------------------------------------

    def ready_key(self) -> bytes:
        """Both are one run."""
        return self.ready_at(0, self.ready[1])

    def ready_at(self, later_ms: int, item_id: bytes) -> bytes:
        return level_part(LEVEL) + due_part(START_MS + later_ms, item_id)

    def delayed_key(self, at: int) -> bytes:
        return due_part(START_MS + 100 * (at + 1), self.delayed[at])

    def expiry_key(self) -> bytes:
        return due_part(START_MS + 1000, self.lease)

    # --- changes ----------------------------------------------------------------------------------

    def put(self, family: Family, tail: bytes, value: bytes) -> None:
        self.batch.put(family, self.prefix + tail, value)

    def delete(self, family: Family, tail: bytes) -> None:
        self.batch.delete(family, self.prefix + tail)

    def get(self, family: Family, tail: bytes) -> bytes:
        return self.rig.store.get(family, self.prefix + tail) or b""

    def place(self, later_ms: int, item_id: bytes) -> None:
        self.put(Family.PLACES, item_id, (START_MS + later_ms).to_bytes(8))

    def set(self, **values: object) -> None:
        counters = decode_counters(self.get(Family.COUNTERS, b""))
        for name, value in values.items():
            assert getattr(counters, name) != value
            setattr(counters, name, value)
        self.put(Family.COUNTERS, b"", encode_counters(counters))

    def count(self, ready: int = 0, **more: int) -> None:
        """Change counters, and the level of plain items with the number of ready ones."""
        counters = decode_counters(self.get(Family.COUNTERS, b""))
        for name, by in {"ready": ready, **more}.items():
            setattr(counters, name, getattr(counters, name) + by)
        counters.levels[LEVEL] = (counters.levels[LEVEL][0] + ready, LOWEST_DUE)
        self.put(Family.COUNTERS, b"", encode_counters(counters))

    def change_lease(self, change: Callable[[list[Run]], list[Run]], later_ms: int = 0) -> None:
        expires_at_ms, held = decode_lease(self.get(Family.LEASES, self.lease))
        changed = encode_held(change(decode_held(held)))
        self.put(Family.LEASES, self.lease, encode_lease(expires_at_ms + later_ms, changed))

    def change_batch(self, number: bytes, **values: object) -> None:
        record: BatchRecord = decode_batch(self.get(Family.BATCHES, number))
        for name, value in values.items():
            assert getattr(record, name) != value
            setattr(record, name, value)
        self.put(Family.BATCHES, number, encode_batch(record))

    # --- runs and blocks --------------------------------------------------------------------------

    def run(self, item_id: bytes, count: int = 1, mark: Mark = PLAIN) -> Run:
        """The run of an item and those after it."""
        found = BlockFinder(QueueEntries(self.rig.store, self.prefix)).find(item_id)
        assert found is not None
        block, position = found
        return block.run(position, position + count, mark)

    def put_ready(self, run: Run, later_ms: int = 0) -> None:
        key = self.ready_at(later_ms, run.last)
        self.put(Family.VISIBILITY_INDEX, key, encode_run(run))

    def change_run(self, family: Family, tail: bytes, **values: Any) -> None:
        """Another run for ready or delayed items."""
        run = decode_run(tail[-16:], self.get(family, tail))
        self.put(family, tail, encode_run(run._replace(**values)))

    def remark(self, tail: bytes, **values: int) -> None:
        """Another mark for a ready run."""
        run = decode_run(tail[-16:], self.get(Family.VISIBILITY_INDEX, tail))
        mark = encode_mark(decode_mark(run.mark)._replace(**values))
        self.put(Family.VISIBILITY_INDEX, tail, encode_run(run._replace(mark=mark)))

    def change_leftover(self, block: bytes, **values: int) -> None:
        left = decode_leftover(self.get(Family.LEFTOVERS, block))
        self.put(Family.LEFTOVERS, block, encode_leftover(left._replace(**values)))

    def after_ready(self) -> ItemId:
        """An id that no block has."""
        return shifted(self.ready[1], 1)

    def set_head(self, head: LogHead) -> None:
        self.put(Family.LOGS, b"", encode_log_head(head))


@dataclass(frozen=True)
class Case:
    """Damage, and the rules that report it: the one that it breaks, and those it breaks too."""

    rule: str
    text: str
    damage: Callable[[Damage], object]
    also: set[str] = field(default_factory=set)

    @property
    def name(self) -> str:
        return f"{self.rule}: {self.text}"

    @property
    def rules(self) -> set[str]:
        return {self.rule} | self.also

    def rules_found(self, rig: Rig) -> set[str]:
        damage = Damage(rig)
        rig.assert_sound()
        self.damage(damage)
        rig.store.write(damage.batch)
        return {violation.rule for violation in check_store(rig.store)}


def steps(*each: Callable[[Damage], object]) -> Callable[[Damage], object]:
    def damage(d: Damage) -> None:
        for step in each:
            step(d)

    return damage
