"""The index of ready items: levels of priority, a window of each in memory, contents of new items.

Every item enters and leaves the index through here, so that entries, counters, the family `places`
and the windows always agree. A level has the items of one priority, or its quarantined ones.
"""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, cast

from queueber.db.families import Family
from queueber.db.records.keys import TIME_BYTES, Due, Entry, Mark, level_part, mark_level
from queueber.db.records.queues import Counters
from queueber.db.store.contract import Store
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.queue.places import drop_places, put_places
from queueber.engine.queue.ready_window import ReadyWindow
from queueber.engine.queue.recent_contents import RecentContents
from queueber.ids import ItemId
from queueber.limits import LEVELS

NewContents = tuple[Sequence[ItemId], Sequence[bytes]]
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
        """One for each level that has items."""

    # --- reading ----------------------------------------------------------------------------------

    def first(self, counters: Counters, level: int, count: int) -> list[Entry]:
        """The first entries of a level that has some, from its window."""
        window = self.windows[level]
        low = counters.levels[level][1]
        window.fill(self._store, self._prefix + level_part(level), low, count)
        return list(islice(window.entries, count))

    def take_contents(self, ids: Sequence[ItemId]) -> list[bytes | None]:
        """The contents of items that leave the index; None for those that are not cached."""
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
        """Add entries, given in order of due part, each to the level of its mark.

        `is_placed` if the family `places` is right already: the items were delayed until this very
        time, or it is the time in their ids.
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
        """As `put`, with the entries of each level given together."""
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

    def count_loaded(self, tx: Transaction[Any], level: int, count: int, first: Due) -> None:
        """Count entries that a load brought as a file; none of them is before `first`."""
        _count(tx.counters, level, count, first)
        # Entries of the file may come before those of the window.
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
        """Take out the first entries of a level."""
        self._leave(tx, level, entries, low=entries[-1][0])
        tx.after_write(self._drop_first, tx.counters, level, len(entries))

    def take_some(self, tx: Transaction[Any], level: int, entries: Sequence[Entry]) -> None:
        """Take out some entries of a level, wherever they are."""
        self._leave(tx, level, entries, low=tx.counters.levels[level][1])
        tx.after_write(self._discard, tx.counters, level, {due for due, _ in entries})

    def take_if_ready(self, tx: Transaction[Any], due: Due) -> Mark | None:
        """Take the item out if it is ready since that time; its mark if it was, else None."""
        keys = [self._prefix + level_part(level) + due for level in _LEVELS]
        marks = tx.store.get_many(Family.VISIBILITY_INDEX, keys)
        for level, found in zip(_LEVELS, marks, strict=True):
            if found is not None:
                mark = Mark(found)
                self.take_some(tx, level, [(due, mark)])
                return mark
        return None

    def _leave(self, tx: Transaction[Any], level: int, entries: Sequence[Entry], low: Due) -> None:
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

    def _discard(self, counters: Counters, level: int, dues: set[Due]) -> None:
        self._recent.take(self, cast("list[ItemId]", [due[TIME_BYTES:] for due in dues]))
        if level in counters.levels:
            self.windows[level].discard(dues)
        else:
            self.windows.pop(level, None)


def _count(counters: Counters, level: int, count: int, first: Due) -> None:
    counters.ready += count
    before, low = counters.levels.get(level, (0, first))
    # I6: an entry may be earlier than the low mark if a delay ended late or the clock stepped back.
    counters.levels[level] = (before + count, min(low, first))
