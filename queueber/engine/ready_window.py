"""The first ready entries of a queue, kept in memory so that a poll seldom reads the index.

The window always equals the first entries of `visibility_index`, in order; when it `is_complete`,
there are no others. An entry is a due part (visible-at and id) and the size of the contents.
"""

from collections import deque

from queueber.db.families import Family
from queueber.db.keys import PREFIX_BYTES, prefix_end
from queueber.db.records import decode_size
from queueber.db.store import Store
from queueber.limits import READY_WINDOW_ENTRIES

Entry = tuple[bytes, int]


class ReadyWindow:
    __slots__ = ("entries", "is_complete")

    def __init__(self, *, is_complete: bool) -> None:
        self.entries: deque[Entry] = deque()
        self.is_complete = is_complete

    def insert(self, new: list[Entry]) -> None:
        """Take note of entries that were just written, given in order."""
        entries = self.entries
        if entries and new[0] < entries[-1]:
            # Rare: a delay that ended late, or a clock that stepped back.
            last = entries[-1]
            entries.extend(new if self.is_complete else [entry for entry in new if entry < last])
            self.entries = entries = deque(sorted(entries))
        elif self.is_complete:
            entries.extend(new)
        while len(entries) > READY_WINDOW_ENTRIES:
            entries.pop()
            self.is_complete = False

    def fill(self, store: Store, prefix: bytes, ready_low: bytes, count: int) -> None:
        """Hold at least `count` entries, if the queue has as many."""
        if self.is_complete or len(self.entries) >= count:
            return
        start = self.entries[-1][0] + b"\0" if self.entries else ready_low
        # A part of the window at a time: a poll that has to read should not read for a hundred.
        wanted = max(READY_WINDOW_ENTRIES // 4, count - len(self.entries))
        found = store.scan(Family.VISIBILITY_INDEX, prefix + start, prefix_end(prefix), wanted)
        self.entries.extend((key[PREFIX_BYTES:], decode_size(value)) for key, value in found)
        self.is_complete = len(found) < wanted

    def drop_first(self, count: int) -> None:
        popleft = self.entries.popleft
        for _ in range(count):
            popleft()
