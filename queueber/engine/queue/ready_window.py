"""The first ready entries of a level, kept in memory so that a poll seldom reads the index.

The window always equals the first entries of the level in `visibility_index`, in order; if it
`is_complete`, the level has no others.
"""

from collections import deque
from collections.abc import Sequence
from typing import cast

from queueber.db.families import Family
from queueber.db.records.keys import LEVEL_BYTES, PREFIX_BYTES, Due, Entry
from queueber.db.store.contract import Store
from queueber.limits import READY_WINDOW_ENTRIES

_BEFORE_DUE = PREFIX_BYTES + LEVEL_BYTES
_AFTER_ANY_DUE = b"\xff"


class ReadyWindow:
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
            self.entries = entries = deque(sorted(entries))
        elif self.is_complete:
            entries.extend(new)
        if not is_cached:
            self._cut(least)

    def shrink(self) -> None:
        """The contents are no longer cached, so more entries than usual save no reads."""
        self._cut(READY_WINDOW_ENTRIES)

    def _cut(self, least: int) -> None:
        while len(self.entries) > least:
            self.entries.pop()
            self.is_complete = False

    def fill(self, store: Store, head: bytes, low: Due, count: int) -> None:
        """Read on until the window has at least `count` entries, if the level has that many.

        The keys of the level begin with `head`, and none of its entries is before `low`.
        """
        if self.is_complete or len(self.entries) >= count:
            return
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
