"""An engine on a real store with one queue, and time in the hands of the test."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import NoReturn

from queueber.db.families import Family
from queueber.db.records.blocks import Block, bits_of, decode_leftover
from queueber.db.records.dead_letters import decode_dead
from queueber.db.records.leases import decode_lease
from queueber.db.records.log import LogHead
from queueber.db.records.queues import Counters
from queueber.db.records.runs import (
    Entry,
    MarkFields,
    Run,
    decode_entry,
    decode_held,
    decode_mark,
)
from queueber.db.store.contract import Batch
from queueber.db.store.rocks import RocksStore
from queueber.engine.integrity.check_store import check_store
from queueber.engine.open import Engine, open_engine
from queueber.engine.queue.queue_state import QueueState
from queueber.errors import Unavailable
from queueber.ids import IdSource, ids_up_to
from queueber.limits import MIB
from queueber.model import Added, FailOutcome, NewItems, Polled, QueueSettings, Stats, Sweep
from tests.support.dumps import Dump, dump
from tests.support.folders import quick_folder, remove_folder
from tests.support.operations import (
    add,
    complete,
    create_queue,
    extend,
    fail,
    poll,
    queue_stats,
    release,
    remove,
    sweep,
)

Window = tuple[list[Entry], bool]

START_MS = 1_700_000_000_000
QUEUE = "q"


@dataclass(frozen=True)
class Memory:
    """What the engine keeps in memory of its queues."""

    names: list[str]
    next_queue_id: int
    retired_last_id: bytes
    agenda_ms: int
    queues: dict[str, tuple[int, QueueSettings, Counters, dict[int, Window], bool, int, LogHead]]


class Rig:
    def __init__(self, settings: QueueSettings | None = None) -> None:
        self.folder: Path = quick_folder()
        self.now_ms = START_MS
        self.random = Random(1)
        self.store = RocksStore(self.folder / "data")
        self.engine: Engine = open_engine(self.store, IdSource(self.random))
        create_queue(self.engine, QUEUE, settings or QueueSettings(), self.now_ms)

    @property
    def queue(self) -> QueueState:
        return self.engine.queues.get(QUEUE)

    def close(self) -> None:
        self.store.close()
        remove_folder(self.folder)

    def reopen(self) -> None:
        self.store.close()
        self.store = RocksStore(self.folder / "data")
        self.engine = open_engine(self.store, IdSource(self.random))

    # --- operations, now --------------------------------------------------------------------------

    def add(self, *contents: bytes, delays_ms: Sequence[int] = ()) -> list[bytes]:
        return list(self.add_items(NewItems(contents, delays_ms)).ids)

    def add_items(self, items: NewItems) -> Added:
        return add(self.engine, self.queue, items, self.now_ms)

    def poll(self, count: int = 1, *, lease_ms: int = 1000, bytes_max: int = MIB) -> Polled:
        return self.poll_many([count], lease_ms=lease_ms, bytes_max=bytes_max)[0]

    def poll_many(
        self, counts: Sequence[int], *, lease_ms: int = 1000, bytes_max: int = MIB
    ) -> list[Polled]:
        return poll(
            self.engine,
            self.queue,
            counts,
            lease_ms=lease_ms,
            answer_bytes_max=bytes_max,
            now_ms=self.now_ms,
        )

    def remove(self, ids: Sequence[bytes], lease_id: bytes) -> list[bool]:
        return remove(self.engine, self.queue, ids, [lease_id] * len(ids), self.now_ms)

    def complete(
        self, ids: Sequence[bytes], lease_id: bytes, results: Sequence[bytes] | None = None
    ) -> list[bool]:
        results = [b"result"] * len(ids) if results is None else results
        leases = [lease_id] * len(ids)
        return complete(self.engine, self.queue, ids, leases, results, self.now_ms)

    def fail(
        self,
        ids: Sequence[bytes],
        lease_id: bytes,
        error: str = "it failed",
        delay_ms: int | None = None,
    ) -> list[FailOutcome]:
        count = len(ids)
        return fail(
            self.engine,
            self.queue,
            ids,
            [lease_id] * count,
            [error] * count,
            [delay_ms] * count,
            self.now_ms,
        )

    def release(self, ids: Sequence[bytes], lease_id: bytes) -> list[bool]:
        return release(self.engine, self.queue, ids, [lease_id] * len(ids), self.now_ms)

    def extend(self, lease_id: bytes, lease_ms: int) -> bool:
        return extend(self.engine, self.queue, [lease_id], [lease_ms], self.now_ms)[0]

    def sweep_all(self, items_max: int = 1000) -> list[Sweep]:
        """All slices that are due now."""
        slices = []
        while (swept := sweep(self.engine, self.now_ms, items_max)) is not None:
            slices.append(swept)
            assert len(slices) < 100_000, "the sweep does not end"
        return slices

    def stats(self) -> Stats:
        return queue_stats(self.engine, self.queue, waiting_polls=0, now_ms=self.now_ms)

    # --- what there is ----------------------------------------------------------------------------

    def dump(self) -> Dump:
        return dump(self.store)

    def keys(self, family: Family) -> list[bytes]:
        return [key for key, _ in self.dump()[family.family_name]]

    def runs(self, family: Family) -> list[Run]:
        """The runs of a family of states, in the order of its entries."""
        entries = self.dump()[family.family_name]
        if family is Family.LEASES:
            return [run for _, value in entries for run in decode_held(decode_lease(value)[1])]
        if family is Family.DEAD:
            return [decode_dead(key[4:], value)[2] for key, value in entries]
        return [decode_entry(key[-24:], value)[1] for key, value in entries]

    def ids(self, family: Family) -> list[bytes]:
        """The items of a family of states, in the order of its entries."""
        return [item_id for run in self.runs(family) for item_id in run.ids]

    def marks(self, family: Family) -> list[MarkFields]:
        """The marks of the items of a family of states, in the order of its entries."""
        return [decode_mark(run.mark) for run in self.runs(family) for _ in range(run.count)]

    def held(self) -> list[tuple[bytes, bytes]]:
        """The items in progress, each with its mark, in the order of their ids."""
        runs = self.runs(Family.LEASES)
        return sorted((item_id, run.mark) for run in runs for item_id in run.ids)

    def stored_ids(self) -> list[bytes]:
        """The items whose contents are stored, in order."""
        left = {key: decode_leftover(value).bits for key, value in self.dump()["leftovers"]}
        ids: list[bytes] = []
        for key, value in self.dump()["items"]:
            of_block = ids_up_to(key[4:], Block(value).span)
            bits = left.get(key, bits_of(0, len(of_block)))
            ids += [item_id for at, item_id in enumerate(of_block) if bits >> at & 1]
        return ids

    def memory(self) -> Memory:
        engine = self.engine
        return Memory(
            names=sorted(engine.queues.by_name),
            next_queue_id=engine.kernel.numbers.next,
            retired_last_id=engine.queues.retired_last_id,
            agenda_ms=engine.agenda.next_ms(),
            queues={
                name: (
                    queue.queue_id,
                    queue.settings,
                    queue.counters.copy(),
                    {
                        level: (list(window.entries), window.is_complete)
                        for level, window in queue.ready.windows.items()
                    },
                    queue.is_deleted,
                    queue.paused_until_ms,
                    queue.results.head,
                )
                for name, queue in engine.queues.by_name.items()
            },
        )

    def ready_ids(self) -> list[bytes]:
        """The ready items in the order of the index."""
        return self.ids(Family.VISIBILITY_INDEX)

    def assert_sound(self) -> None:
        assert check_store(self.store) == []
        assert_window_is_the_front_of_the_index(self)


def assert_window_is_the_front_of_the_index(rig: Rig) -> None:
    for queue in rig.engine.queues:
        assert set(queue.ready.windows) == set(queue.counters.levels)
        for level, window in queue.ready.windows.items():
            head = queue.prefix + bytes([level])
            index = [
                decode_entry(key[5:], value)
                for key, value in rig.dump()["visibility_index"]
                if key.startswith(head)
            ]
            entries = list(window.entries)
            assert entries == index[: len(entries)]
            if window.is_complete:
                assert entries == index


def refuse_write(batch: Batch) -> NoReturn:
    """Stands for `Store.write` on a disk that is full."""
    raise Unavailable("the disk of the data directory is full")
