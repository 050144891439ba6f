"""The index of ready items: levels of priority, a window of each in memory, contents of new items.

Every item enters and leaves the index through here, so that entries, counters, the family `places`
and the windows always agree. A level has the items of one priority, or its quarantined ones.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import islice, repeat
from typing import Any, cast

from queueber.db.families import Family
from queueber.db.records.keys import (
    LEVEL_BYTES,
    PREFIX_BYTES,
    TIME_BYTES,
    Due,
    Entry,
    Mark,
    level_part,
    mark_level,
)
from queueber.db.records.queues import Counters
from queueber.db.store.contract import Store
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.queue.places import drop_places, put_places
from queueber.ids import ItemId
from queueber.limits import LEVELS, READY_WINDOW_ENTRIES, RECENT_BYTES_MAX, RECENT_QUEUE_BYTES_MAX

NewContents = tuple[Sequence[ItemId], Sequence[bytes]]
"""Ids and contents of items that are added now."""

Levels = Sequence[tuple[int, Sequence[Entry]]]
"""The entries of each level, in order."""

_LEVELS = range(LEVELS)
_BEFORE_DUE = PREFIX_BYTES + LEVEL_BYTES
_AFTER_ANY_DUE = b"\xff"

_ENTRY_BYTES = 350
"""Memory of an item beside its contents, in the cache of contents and in its window."""

_IDLE_ADDS = 100
"""A queue is idle if this many adds of other queues came since it was last used."""


class ReadyIndex:
    """The ready items of one queue."""

    __slots__ = ("_prefix", "_recent", "_store", "windows")

    def __init__(
        self, store: Store, prefix: bytes, levels: Iterable[int], recent: "RecentContents"
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
        if not window.is_complete and len(window.entries) < count:
            head = self._prefix + level_part(level)
            window.fill(self._store, head, counters.levels[level][1], count)
        return list(islice(window.entries, count))

    def take_contents(self, ids: Sequence[ItemId]) -> list[bytes | None]:
        """The contents of items that leave the index; None for those that are not cached."""
        return self._recent.take(self, ids)

    def forget_contents(self) -> None:
        """The queue is gone, or is being emptied."""
        self._recent.forget(self)

    def contents_dropped(self) -> None:
        """The cache has dropped the contents, so more entries than usual save no reads."""
        for window in self.windows.values():
            window.cut(READY_WINDOW_ENTRIES)

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
        levels: Levels,
        *,
        is_placed: bool = False,
        contents: NewContents | None = None,
    ) -> None:
        """As `put`, with the entries of each level given together."""
        for level, entries in levels:
            head = self._prefix + level_part(level)
            keys, marks = [head + due for due, _ in entries], [mark for _, mark in entries]
            tx.batch.put_columns(Family.VISIBILITY_INDEX, keys, marks)
            if not is_placed:
                put_places(tx, entries)
            _count(tx.counters, level, len(entries), entries[0][0])
        tx.after_write(self._insert, levels, contents)

    def count_loaded(self, tx: Transaction[Any], level: int, count: int, first: Due) -> None:
        """Count entries that a load brought as a file; none of them is before `first`."""
        _count(tx.counters, level, count, first)
        # Entries of the file may come before those of the window.
        tx.after_write(self.windows.__setitem__, level, ReadyWindow(is_complete=False))

    def _insert(self, levels: Levels, contents: NewContents | None) -> None:
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


class ReadyWindow:
    """The first ready entries of a level, kept in memory so that a poll seldom reads the index.

    The window always equals the first entries of the level in `visibility_index`, in order; if it
    `is_complete`, the level has no others.
    """

    __slots__ = ("entries", "is_complete")

    def __init__(self, *, is_complete: bool) -> None:
        self.entries: deque[Entry] = deque()
        self.is_complete = is_complete

    def insert(self, new: Sequence[Entry], *, is_cached: bool = False) -> None:
        """Add entries that were just written, given in order.

        If their contents are cached as well, a poll reads nothing of them from the store: then only
        the size of that cache limits how many entries the window has.
        """
        entries = self.entries
        least = max(READY_WINDOW_ENTRIES, len(entries))
        if entries and new[0] < entries[-1]:
            # Rare: a delay that ended late, or a clock that stepped back.
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

    def fill(self, store: Store, head: bytes, low: Due, count: int) -> None:
        """Read on until the window has at least `count` entries, if the level has that many.

        The keys of the level begin with `head`, and none of its entries is before `low`.
        """
        start = self.entries[-1][0] + b"\0" if self.entries else low
        # A quarter of the window at a time, so that one poll does not read for a hundred others.
        wanted = max(READY_WINDOW_ENTRIES // 4, count - len(self.entries))
        found = store.scan(Family.VISIBILITY_INDEX, head + start, head + _AFTER_ANY_DUE, wanted)
        self.entries.extend(cast("list[Entry]", [(key[_BEFORE_DUE:], mark) for key, mark in found]))
        self.is_complete = len(found) < wanted

    def drop_first(self, count: int) -> None:
        popleft = self.entries.popleft
        for _ in range(count):
            popleft()

    def discard(self, dues: set[Due]) -> None:
        """Remove entries that left the index, wherever they are."""
        self.entries = deque(entry for entry in self.entries if entry[0] not in dues)


class RecentContents:
    """A cache of the contents of recently added items, for all queues: polls read nothing.

    Most items are polled soon after they were added. Contents never change, so a cached one is
    right until its item is polled; a poll reads from the store what is not cached. When a queue has
    used up its share, its oldest contents stay, because they are polled first. When the cache is
    full, it drops the contents of idle queues.
    """

    def __init__(self) -> None:
        self._bytes = 0
        self._adds = 0
        self._users: dict[ReadyIndex, _Share] = {}
        """In order of use: the one that was used last comes last."""

    def keep(self, user: ReadyIndex, ids: Sequence[ItemId], contents: Sequence[bytes]) -> bool:
        """Cache all of them, or none if they do not fit; whether they are cached."""
        size = sum(map(len, contents)) + _ENTRY_BYTES * len(ids)
        self._adds += 1
        share = self._use(user) or _Share()
        if share.bytes + size > RECENT_QUEUE_BYTES_MAX:
            return False
        while self._bytes + size > RECENT_BYTES_MAX:
            idlest, of_idlest = next(iter(self._users.items()), (user, share))
            if idlest is user or self._adds - of_idlest.used_at <= _IDLE_ADDS:
                return False
            self.forget(idlest)
            idlest.contents_dropped()
        self._users[user] = share
        share.used_at = self._adds
        share.contents.update(zip(ids, contents, strict=True))
        share.bytes += size
        self._bytes += size
        return True

    def take(self, user: ReadyIndex, ids: Iterable[ItemId]) -> list[bytes | None]:
        """The contents of items, None for those that are not cached. The cache drops them."""
        share = self._use(user)
        if share is None:
            return [None for _ in ids]
        taken = list(map(share.contents.pop, ids, repeat(None)))
        found = [each for each in taken if each is not None]
        size = sum(map(len, found)) + _ENTRY_BYTES * len(found)
        share.bytes -= size
        self._bytes -= size
        if not share.contents:
            del self._users[user]
        return taken

    def forget(self, user: ReadyIndex) -> None:
        """Drop the contents of a queue: it was deleted or emptied."""
        share = self._users.pop(user, None)
        if share is not None:
            self._bytes -= share.bytes

    def _use(self, user: ReadyIndex) -> "_Share | None":
        share = self._users.pop(user, None)
        if share is not None:
            share.used_at = self._adds
            self._users[user] = share
        return share


class _Share:
    """What is cached of one queue."""

    __slots__ = ("bytes", "contents", "used_at")

    def __init__(self) -> None:
        self.contents: dict[ItemId, bytes] = {}
        self.bytes = 0
        self.used_at = 0
