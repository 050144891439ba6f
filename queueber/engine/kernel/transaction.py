"""One atomic step of one queue.

A change gathers a batch, the counters as they will be, and what memory has to take note of once the
batch is written. Where an item is, is said in four families; entering and leaving them goes through
here, so that entries, counters, places and windows cannot drift apart.
"""

from collections.abc import Iterable, Sequence

from queueber.db.families import Family
from queueber.db.records.batches import BatchRecord, batch_number_part, decode_batch, encode_batch
from queueber.db.records.counters import encode_counters
from queueber.db.records.keys import (
    NEVER_MS,
    TIME_BYTES,
    level_part,
    split_due_part,
    text_digest,
)
from queueber.db.records.loads import LoadRecord, encode_load, load_key, parts_end
from queueber.db.records.log import LogHead
from queueber.db.records.marks import mark_level
from queueber.db.store.contract import Batch
from queueber.engine.kernel.state import Engine, QueueState
from queueber.engine.queue.ready_window import Entry, ReadyWindow
from queueber.errors import invariant


class Change:
    __slots__ = (
        "_agenda", "_batches", "_drawn", "_dropped", "_due_ms", "_engine", "_fresh", "_loaded",
        "_loads", "_made_ready", "_queue", "_store", "_vanished", "batch", "counters", "log_head",
    )  # fmt: skip

    def __init__(self, engine: Engine, queue: QueueState) -> None:
        self._engine = engine
        self._store = engine.store
        self._agenda = engine.agenda
        self._due_ms = NEVER_MS
        self._queue = queue
        self.batch: Batch = engine.store.batch()
        self.counters = queue.counters.copy()
        self.log_head: LogHead | None = None
        """The head of the results after an append to them."""
        self._batches: dict[int, BatchRecord] = {}
        self._vanished: list[str] = []
        self._loads: dict[bytes, LoadRecord | None] = {}
        self._loaded: list[int] = []
        self._made_ready: list[tuple[int, Sequence[Entry]]] = []
        self._fresh: tuple[Sequence[bytes], Sequence[bytes]] = (), ()
        self._drawn: list[tuple[int, int]] = []
        self._dropped: dict[int, set[bytes]] = {}

    # --- ready ------------------------------------------------------------------------------------

    def make_ready(self, entries: Iterable[Entry], *, is_placed: bool = False) -> None:
        """Entries in order of due part, each into the level of its mark.

        `is_placed` when places need not be told of them: they were delayed to this very time, or
        it is the one in their ids.
        """
        levels: dict[int, list[Entry]] = {}
        for entry in entries:
            levels.setdefault(mark_level(entry[1]), []).append(entry)
        for level, of_level in levels.items():
            self.make_ready_at(level, of_level, is_placed=is_placed)

    def make_ready_at(
        self, level: int, entries: Sequence[Entry], *, is_placed: bool = False
    ) -> None:
        """The same, all of one level."""
        head = self._queue.prefix + level_part(level)
        self.batch.put_columns(
            Family.VISIBILITY_INDEX,
            [head + due for due, _ in entries],
            [mark for _, mark in entries],
        )
        if not is_placed:
            self._place(entries)
        counters, first = self.counters, entries[0][0]
        counters.ready += len(entries)
        count, low = counters.levels.get(level, (0, first))
        # I6: something may lie before the mark when a delay ended late or the clock stepped back.
        counters.levels[level] = (count + len(entries), min(low, first))
        self._made_ready.append((level, entries))

    def keep_fresh(self, ids: Sequence[bytes], contents: Sequence[bytes]) -> None:
        """The contents of items that were made ready, in case they are polled soon."""
        self._fresh = ids, contents

    def load_ready(self, level: int, count: int, first: bytes) -> None:
        """Entries of a level that the store has taken in as a file; `first` is their first one."""
        counters = self.counters
        counters.ready += count
        before, low = counters.levels.get(level, (0, first))
        counters.levels[level] = (before + count, min(low, first))
        self._loaded.append(level)

    def draw_ready(self, level: int, entries: Sequence[Entry]) -> None:
        """The first entries of a level leave it."""
        self._leave_ready(level, entries, low=entries[-1][0])
        self._drawn.append((level, len(entries)))

    def drop_ready(self, level: int, entries: Sequence[Entry]) -> None:
        """Some entries of a level leave it, wherever they stand."""
        self._leave_ready(level, entries, low=self.counters.levels[level][1])
        self._dropped.setdefault(level, set()).update(due for due, _ in entries)

    def _leave_ready(self, level: int, entries: Sequence[Entry], low: bytes) -> None:
        head = self._queue.prefix + level_part(level)
        self.batch.delete_many(Family.VISIBILITY_INDEX, [head + due for due, _ in entries])
        self._displace(entries)
        counters = self.counters
        counters.ready -= len(entries)
        count = counters.levels[level][0] - len(entries)
        if count:
            counters.levels[level] = (count, low)
        else:
            del counters.levels[level]

    # --- delayed ----------------------------------------------------------------------------------

    def make_delayed(self, entries: Sequence[Entry]) -> None:
        prefix, counters = self._queue.prefix, self.counters
        self.batch.put_many(Family.DELAYED, [(prefix + due, mark) for due, mark in entries])
        self._place(entries)
        counters.delayed += len(entries)
        first_ms = split_due_part(min(entries)[0])[0]
        counters.delayed_due_ms = min(counters.delayed_due_ms, first_ms)
        self.look_at(first_ms)

    def load_delayed(self, count: int, first_ms: int) -> None:
        """Delayed items that the store has taken in as a file; `first_ms` is the earliest time."""
        self.counters.delayed += count
        self.counters.delayed_due_ms = min(self.counters.delayed_due_ms, first_ms)
        self.look_at(first_ms)

    def drop_delayed(self, entries: Sequence[Entry], *, stay_placed: bool = False) -> None:
        """`stay_placed` when they become ready at the very time that they were delayed to."""
        prefix = self._queue.prefix
        self.batch.delete_many(Family.DELAYED, [prefix + due for due, _ in entries])
        if not stay_placed:
            self._displace(entries)
        self.counters.delayed -= len(entries)

    # --- places: what finds a ready or delayed item by its id ------------------------------------

    def _place(self, entries: Sequence[Entry]) -> None:
        moved = _not_where_their_ids_say(entries)
        if moved:
            prefix = self._queue.prefix
            self.batch.put_many(
                Family.PLACES, [(prefix + due[TIME_BYTES:], due[:TIME_BYTES]) for due in moved]
            )

    def _displace(self, entries: Sequence[Entry]) -> None:
        moved = _not_where_their_ids_say(entries)
        if moved:
            prefix = self._queue.prefix
            self.batch.delete_many(Family.PLACES, [prefix + due[TIME_BYTES:] for due in moved])

    # --- batches ----------------------------------------------------------------------------------

    def add_batch(self, number: int, record: BatchRecord) -> None:
        self._batches[number] = record

    def batch_record(self, number: int) -> BatchRecord:
        """The sums of a batch, to be changed in place: they are written with this change."""
        record = self._batches.get(number)
        if record is None:
            key = self._queue.prefix + batch_number_part(number)
            stored = self._store.get(Family.BATCHES, key)
            invariant(stored is not None, "I10", queue=self._queue.name, batch=number)
            record = self._batches[number] = decode_batch(stored or b"")
        return record

    def drop_batch(self, number: int) -> None:
        """A batch is known no more."""
        record = self._batches.pop(number)
        prefix = self._queue.prefix
        self.batch.delete(Family.BATCHES, prefix + batch_number_part(number))
        self.batch.delete(Family.BATCH_NAMES, prefix + text_digest(record.name))
        self.counters.batches -= 1
        self._vanished.append(record.name)

    # --- loads ------------------------------------------------------------------------------------

    def put_load(self, digest: bytes, load: LoadRecord) -> None:
        self._loads[digest] = load

    def end_load(self, digest: bytes) -> None:
        """It is under way no more: its record and those of its parts go."""
        self._loads[digest] = None

    # --- the end ----------------------------------------------------------------------------------

    def look_at(self, due_ms: int) -> None:
        """Have the queue looked at when this comes due."""
        self._due_ms = min(self._due_ms, due_ms)

    def commit(self) -> None:
        """Write it. When the store refuses, nothing has changed, in memory neither."""
        queue, batch = self._queue, self.batch
        for number, record in self._batches.items():
            key = queue.prefix + batch_number_part(number)
            batch.put(Family.BATCHES, key, encode_batch(record))
        for digest, load in self._loads.items():
            key = queue.prefix + load_key(digest)
            if load is not None:
                batch.put(Family.LOADS, key, encode_load(load))
            else:
                batch.delete_range(Family.LOADS, key, queue.prefix + parts_end(digest))
        batch.put(Family.COUNTERS, queue.prefix, encode_counters(self.counters))
        self._store.write(batch)
        self._take_note()

    def _take_note(self) -> None:
        """It is written: memory follows."""
        queue = self._queue
        queue.counters = self.counters
        if self._due_ms < NEVER_MS:
            self._agenda.schedule(queue.queue_id, self._due_ms)
        if self.log_head is not None:
            queue.results.head = self.log_head
        engine = self._engine
        is_fresh = bool(self._fresh[0]) and engine.fresh.keep(
            queue.queue_id, *self._fresh, engine.shrink_windows
        )
        self._note_ready(is_fresh=is_fresh)
        for record in self._batches.values():
            if record.live == 0 and not record.loads:
                queue.finished_batches.add(record.name)
        queue.finished_batches.update(self._vanished)
        for digest, load in self._loads.items():
            if load is not None:
                queue.loads[digest] = load
            elif digest in queue.loads:
                self._engine.stale_stages.append(queue.loads.pop(digest).directory)

    def _note_ready(self, *, is_fresh: bool) -> None:
        queue = self._queue
        for level in self._loaded:
            # What was read before may not be first any more.
            queue.windows[level] = ReadyWindow(is_complete=False)
        for level, count in self._drawn:
            queue.windows[level].drop_first(count)
        for level, dues in self._dropped.items():
            queue.windows[level].discard(dues)
            self._engine.fresh.take(queue.queue_id, [due[TIME_BYTES:] for due in dues])
        for level, entries in self._made_ready:
            window = queue.windows.get(level)
            if window is None:
                window = queue.windows[level] = ReadyWindow(is_complete=True)
            window.insert(entries, is_fresh=is_fresh)
        if len(queue.windows) != len(self.counters.levels):
            queue.windows = {
                level: window
                for level, window in queue.windows.items()
                if level in self.counters.levels
            }


def _not_where_their_ids_say(entries: Sequence[Entry]) -> list[bytes]:
    # As `is_where_its_id_says` has it, without a call for each entry.
    return [due for due, _ in entries if due[2:8] != due[8:14]]
