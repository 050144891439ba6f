"""The index of ready items: levels of priority, and a window of each in memory.

Every run enters and leaves the index through here, so that entries, counters, the family `places`
and the windows always agree. A level has the items of one priority, or its quarantined ones.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from queueber.db.families import Family
from queueber.db.records.keys import (
    LEVEL_BYTES,
    PREFIX_BYTES,
    Due,
    level_part,
)
from queueber.db.records.queues import Counters
from queueber.db.records.runs import (
    Entry,
    Run,
    at_time_of,
    count_items,
    decode_entry,
    encode_run,
    mark_level,
)
from queueber.db.store.contract import Store
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.queue.places import drop_places, find_entry, put_places
from queueber.ids import ItemId
from queueber.limits import PARKED_LEVEL, READY_WINDOW_ENTRIES

Levels = Sequence[tuple[int, Sequence[Entry]]]
"""The entries of each level, in order."""
Replaced = dict[Due, tuple[Run, Sequence[Entry]]]
"""Entries that leave the index, each with what is left of it."""

_BEFORE_DUE = PREFIX_BYTES + LEVEL_BYTES
_AFTER_ANY_DUE = b"\xff"


class ReadyIndex:
    """The ready items of one queue."""

    __slots__ = ("_on_left", "_prefix", "_store", "windows")

    def __init__(
        self,
        store: Store,
        prefix: bytes,
        levels: Iterable[int],
        on_left: Callable[[Sequence[tuple[ItemId, int]]], None],
    ) -> None:
        """`on_left` is called with blocks, and how many items of each have left the index."""
        self._store = store
        self._prefix = prefix
        self._on_left = on_left
        self.windows = {level: ReadyWindow(is_complete=False) for level in levels}
        """One for each level that has items."""

    # --- reading ----------------------------------------------------------------------------------

    def first(self, counters: Counters, level: int, items: int) -> list[Entry]:
        """The first entries of a level that has some: so many that they have `items`, or all."""
        window = self.windows[level]
        head = self._prefix + level_part(level)
        while True:
            found = window.first(items)
            if found is not None:
                return found
            window.fill(self._store, head, counters.levels[level][1], items)

    def find(self, counters: Counters, at_ms: int, item_id: bytes) -> tuple[int, Entry] | None:
        """The level and the entry of an item that is ready since that time; else None."""
        for level in counters.levels:
            head = self._prefix + level_part(level)
            entry = find_entry(self._store, Family.VISIBILITY_INDEX, head, at_ms, item_id)
            if entry is not None:
                return level, entry
        return None

    def cut_windows(self) -> None:
        """The cache has dropped the blocks, so more entries than usual save no reads."""
        for window in self.windows.values():
            window.cut(READY_WINDOW_ENTRIES)

    # --- entering ---------------------------------------------------------------------------------

    def put(
        self,
        tx: Transaction[Any],
        entries: Iterable[Entry],
        *,
        is_placed: bool = False,
        keep: Callable[[], bool] | None = None,
    ) -> None:
        """Add entries, given in order of due part, each to the level of its mark.

        `is_placed` if the family `places` is right already: the items were delayed until this very
        time, or it is the time in their ids. `keep` is called once the entries are written; it says
        whether their blocks are cached.
        """
        levels: dict[int, list[Entry]] = {}
        for entry in entries:
            levels.setdefault(mark_level(entry[1].mark), []).append(entry)
        for level, of_level in levels.items():
            self._enter(tx, level, of_level, is_placed=is_placed)
        tx.after_write(self._insert, list(levels.items()), keep)

    def _enter(
        self, tx: Transaction[Any], level: int, entries: Sequence[Entry], *, is_placed: bool
    ) -> None:
        head = self._prefix + level_part(level)
        keys = [head + due for due, _ in entries]
        runs = [run for _, run in entries]
        tx.batch.put_columns(Family.VISIBILITY_INDEX, keys, [encode_run(run) for run in runs])
        if not is_placed:
            put_places(tx, entries)
        _count(tx.counters, level, count_items(runs), entries[0][0])

    def count_loaded(self, tx: Transaction[Any], level: int, count: int, first: Due) -> None:
        """Count items that a load brought as files; no entry of them is before `first`."""
        _count(tx.counters, level, count, first)
        # Entries of the file may come before those of the window.
        tx.after_write(self.windows.__setitem__, level, ReadyWindow(is_complete=False))

    def _insert(self, levels: Levels, keep: Callable[[], bool] | None) -> None:
        is_cached = keep is not None and keep()
        for level, entries in levels:
            if level >= PARKED_LEVEL:
                # No poll takes these, so nothing of them is kept in memory.
                self.windows[level] = ReadyWindow(is_complete=False)
                continue
            window = self.windows.get(level)
            if window is None:
                window = self.windows[level] = ReadyWindow(is_complete=True)
            window.insert(entries, is_cached=is_cached)

    # --- leaving ----------------------------------------------------------------------------------

    def take_first(
        self, tx: Transaction[Any], level: int, entries: Sequence[Entry], rest: Run | None = None
    ) -> None:
        """Take out the first entries of a level, but for `rest`, the end of the last of them."""
        gone = entries if rest is None else entries[:-1]
        self._delete(tx, level, gone)
        if rest is not None:
            # The key has the last id, so it stays, and so does its place.
            key = self._prefix + level_part(level) + entries[-1][0]
            tx.batch.put(Family.VISIBILITY_INDEX, key, encode_run(rest))
        count = count_items([run for _, run in entries]) - (rest.count if rest else 0)
        self._count_left(tx, level, count, low=entries[-1][0])
        tx.after_write(self._drop_first, tx.counters, level, entries, rest)

    def take_some(
        self, tx: Transaction[Any], level: int, entry: Entry, left: Sequence[Run]
    ) -> None:
        """Take out some items of an entry, wherever it is; `left` are the others, in order."""
        due, run = entry
        self._delete(tx, level, [entry])
        self._count_left(tx, level, run.count, low=tx.counters.levels[level][1])
        kept = [at_time_of(due, each) for each in left]
        if kept:
            self._enter(tx, level, kept, is_placed=False)
        replaced: dict[int, Replaced] | None = tx.pending.get(self)
        if replaced is None:
            # All at once: a window may be long, and each pass goes through all of it.
            replaced = tx.pending[self] = {}
            tx.after_write(self._replace, tx.counters, replaced)
        replaced.setdefault(level, {})[due] = run, kept

    def _delete(self, tx: Transaction[Any], level: int, entries: Sequence[Entry]) -> None:
        head = self._prefix + level_part(level)
        tx.batch.delete_many(Family.VISIBILITY_INDEX, [head + due for due, _ in entries])
        drop_places(tx, entries)

    def _count_left(self, tx: Transaction[Any], level: int, count: int, low: Due) -> None:
        counters = tx.counters
        counters.ready -= count
        left = counters.levels[level][0] - count
        if left:
            counters.levels[level] = (left, low)
        else:
            del counters.levels[level]

    def _drop_first(
        self, counters: Counters, level: int, entries: Sequence[Entry], rest: Run | None
    ) -> None:
        if level in counters.levels:
            self.windows[level].drop_first(len(entries), rest)
        else:
            self.windows.pop(level, None)
        left = [(run.block, run.count) for _, run in entries]
        if rest is not None:
            left.append((rest.block, -rest.count))
        self._on_left(left)

    def _replace(self, counters: Counters, replaced: Mapping[int, Replaced]) -> None:
        left: list[tuple[ItemId, int]] = []
        for level, entries in replaced.items():
            if level in counters.levels:
                self.windows[level].replace(entries)
            else:
                self.windows.pop(level, None)
            for run, kept in entries.values():
                left.append((run.block, run.count - count_items([each for _, each in kept])))
        self._on_left(left)


def _count(counters: Counters, level: int, count: int, first: Due) -> None:
    counters.ready += count
    before, low = counters.levels.get(level, (0, first))
    # I6: an entry may be earlier than the low mark if a delay ended late, the clock stepped back,
    # or the end of a run was taken out.
    counters.levels[level] = (before + count, min(low, first))


class ReadyWindow:
    """The first ready entries of a level, kept in memory so that a poll seldom reads the index.

    The window always equals the first entries of the level in `visibility_index`, in order; if it
    `is_complete`, the level has no others.
    """

    __slots__ = ("entries", "is_complete")

    def __init__(self, *, is_complete: bool) -> None:
        self.entries: deque[Entry] = deque()
        self.is_complete = is_complete

    def first(self, items: int) -> list[Entry] | None:
        """The first entries with so many items; None if the window may not have all of them."""
        found: list[Entry] = []
        for entry in self.entries:
            found.append(entry)
            items -= entry[1].count
            if items <= 0:
                return found
        return found if self.is_complete else None

    def insert(self, new: Sequence[Entry], *, is_cached: bool = False) -> None:
        """Add entries that were just written, given in order.

        If their blocks are cached as well, a poll reads nothing of them from the store: then only
        the size of that cache limits how many entries the window has.
        """
        entries = self.entries
        least = max(READY_WINDOW_ENTRIES, len(entries))
        if entries and new[0] < entries[-1]:
            # Rare: a delay that ended late, a clock that stepped back, or a run that was cut.
            last = entries[-1]
            entries.extend(new if self.is_complete else [entry for entry in new if entry < last])
            self.entries = deque(sorted(entries))
        elif self.is_complete:
            entries.extend(new)
        if not is_cached:
            self.cut(least)

    def cut(self, most: int) -> None:
        """Keep the first entries."""
        while len(self.entries) > most:
            self.entries.pop()
            self.is_complete = False

    def fill(self, store: Store, head: bytes, low: Due, items: int) -> None:
        """Read on, for a poll of so many items.

        The keys of the level begin with `head`, and none of its entries is before `low`.
        """
        start = self.entries[-1][0] + b"\0" if self.entries else low
        # A quarter of the window at a time, so that one poll does not read for a hundred others.
        wanted = max(READY_WINDOW_ENTRIES // 4, items - len(self.entries))
        found = store.scan(Family.VISIBILITY_INDEX, head + start, head + _AFTER_ANY_DUE, wanted)
        self.entries.extend([decode_entry(key[_BEFORE_DUE:], value) for key, value in found])
        self.is_complete = len(found) < wanted

    def drop_first(self, count: int, rest: Run | None) -> None:
        """The first entries left the index, but for `rest`, the end of the last of them."""
        popleft = self.entries.popleft
        for _ in range(count):
            due, _ = popleft()
        if rest is not None:
            self.entries.appendleft((due, rest))

    def replace(self, replaced: Replaced) -> None:
        """Entries left the index, wherever they were, and others took their places."""
        if not any(due in replaced for due, _ in self.entries):
            return
        entries: deque[Entry] = deque()
        for each in self.entries:
            found = replaced.get(each[0])
            if found is None:
                entries.append(each)
            else:
                entries.extend(found[1])  # parts of it, so they are in order
        self.entries = entries
