"""The index of ready items: levels of priority, a window of each in memory, contents of new items.

Entering and leaving the index goes through here, so that entries, counters, places and windows
cannot drift apart. A level has the items of one priority, or the quarantined ones of a priority.
"""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from queueber.db.families import Family
from queueber.db.records.counters import Counters
from queueber.db.records.keys import TIME_BYTES, level_part
from queueber.db.records.marks import mark_level
from queueber.db.store.contract import Store
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.queue.places import drop_places, put_places
from queueber.engine.queue.ready_window import Entry, ReadyWindow
from queueber.engine.queue.recent_contents import RecentContents
from queueber.limits import LEVELS

NewContents = tuple[Sequence[bytes], Sequence[bytes]]
"""Ids and contents of items that are added now."""

_LEVELS = range(LEVELS)


class ReadyIndex:
    """The ready items of one queue."""

    __slots__ = ("_prefix", "_recent", "_store", "windows")

    def __init__(
        self, store: Store, prefix: bytes, levels: Iterable[int], recent: RecentContents
    ) -> None:
        self._store = store
        self._prefix = prefix
        self._recent = recent
        self.windows = {level: ReadyWindow(is_complete=False) for level in levels}
        """Of each level that has items."""

    # --- reading ----------------------------------------------------------------------------------

    def first(self, counters: Counters, level: int, count: int) -> list[Entry]:
        """The first entries of a level that has some, from its window."""
        window = self.windows[level]
        low = counters.levels[level][1]
        window.fill(self._store, self._prefix + level_part(level), low, count)
        return list(islice(window.entries, count))

    def take_contents(self, ids: Sequence[bytes]) -> list[bytes | None]:
        """The contents of items that leave the index, as far as they are cached."""
        return self._recent.take(self, ids)

    def forget_contents(self) -> None:
        """The queue is gone, or is being emptied."""
        self._recent.forget(self)

    def contents_dropped(self) -> None:
        for window in self.windows.values():
            window.shrink()

    # --- entering ---------------------------------------------------------------------------------

    def put(
        self,
        tx: Transaction[Any],
        entries: Iterable[Entry],
        *,
        is_placed: bool = False,
        contents: NewContents | None = None,
    ) -> None:
        """Entries in order of due part, each into the level of its mark.

        `is_placed` when places need not be told of them: they were delayed to this very time, or
        it is the one in their ids.
        """
        levels: dict[int, list[Entry]] = {}
        for entry in entries:
            levels.setdefault(mark_level(entry[1]), []).append(entry)
        self.put_levels(tx, list(levels.items()), is_placed=is_placed, contents=contents)

    def put_levels(
        self,
        tx: Transaction[Any],
        levels: Sequence[tuple[int, Sequence[Entry]]],
        *,
        is_placed: bool = False,
        contents: NewContents | None = None,
    ) -> None:
        """The same, with the entries of each level given together."""
        counters = tx.counters
        for level, entries in levels:
            head = self._prefix + level_part(level)
            tx.batch.put_columns(
                Family.VISIBILITY_INDEX,
                [head + due for due, _ in entries],
                [mark for _, mark in entries],
            )
            if not is_placed:
                put_places(tx, entries)
            _count(counters, level, len(entries), entries[0][0])
        tx.after_write(self._insert, levels, contents)

    def count_loaded(self, tx: Transaction[Any], level: int, count: int, first: bytes) -> None:
        """Entries of a level that the store has taken in as a file; `first` is the first due."""
        _count(tx.counters, level, count, first)
        # What was read before may not be first any more.
        tx.after_write(self.windows.__setitem__, level, ReadyWindow(is_complete=False))

    def _insert(
        self, levels: Sequence[tuple[int, Sequence[Entry]]], contents: NewContents | None
    ) -> None:
        is_cached = contents is not None and self._recent.keep(self, *contents)
        for level, entries in levels:
            window = self.windows.get(level)
            if window is None:
                window = self.windows[level] = ReadyWindow(is_complete=True)
            window.insert(entries, is_cached=is_cached)

    # --- leaving ----------------------------------------------------------------------------------

    def take_first(self, tx: Transaction[Any], level: int, entries: Sequence[Entry]) -> None:
        """The first entries of a level leave it."""
        self._leave(tx, level, entries, low=entries[-1][0])
        tx.after_write(self._drop_first, tx.counters, level, len(entries))

    def take_some(self, tx: Transaction[Any], level: int, entries: Sequence[Entry]) -> None:
        """Some entries of a level leave it, wherever they stand."""
        self._leave(tx, level, entries, low=tx.counters.levels[level][1])
        tx.after_write(self._discard, tx.counters, level, {due for due, _ in entries})

    def take_if_ready(self, tx: Transaction[Any], due: bytes) -> bytes | None:
        """Take the item out if it is ready at that time; its mark, if it was."""
        keys = [self._prefix + level_part(level) + due for level in _LEVELS]
        marks = tx.store.get_many(Family.VISIBILITY_INDEX, keys)
        for level, mark in zip(_LEVELS, marks, strict=True):
            if mark is not None:
                self.take_some(tx, level, [(due, mark)])
                return mark
        return None

    def _leave(
        self, tx: Transaction[Any], level: int, entries: Sequence[Entry], low: bytes
    ) -> None:
        head = self._prefix + level_part(level)
        tx.batch.delete_many(Family.VISIBILITY_INDEX, [head + due for due, _ in entries])
        drop_places(tx, entries)
        counters = tx.counters
        counters.ready -= len(entries)
        count = counters.levels[level][0] - len(entries)
        if count:
            counters.levels[level] = (count, low)
        else:
            del counters.levels[level]

    def _drop_first(self, counters: Counters, level: int, count: int) -> None:
        if level in counters.levels:
            self.windows[level].drop_first(count)
        else:
            self.windows.pop(level, None)

    def _discard(self, counters: Counters, level: int, dues: set[bytes]) -> None:
        self._recent.take(self, [due[TIME_BYTES:] for due in dues])
        if level in counters.levels:
            self.windows[level].discard(dues)
        else:
            self.windows.pop(level, None)


def _count(counters: Counters, level: int, count: int, first: bytes) -> None:
    counters.ready += count
    before, low = counters.levels.get(level, (0, first))
    # I6: something may lie before the mark when a delay ended late or the clock stepped back.
    counters.levels[level] = (before + count, min(low, first))
