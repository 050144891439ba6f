"""Selection: which ready items the polls of one call get.

Higher priorities come first, and within one the item that has been visible longest. So that lower
ones do not starve, one lease in `OLDEST_FIRST_EVERY` takes those that have been visible longest,
whatever their priority. `isolation.py` says which items a holder may get together.
"""

from queueber.db.records.keys import Entry, is_plain, mark_group_max, mark_size
from queueber.engine.queue.isolation import Gatekeeper, HeldTogether, Verdict
from queueber.engine.queue.queue_state import QueueState
from queueber.limits import ITEM_WIRE_BYTES, OLDEST_FIRST_EVERY, PRIORITY_MAX


class Selection:
    def __init__(
        self,
        queue: QueueState,
        count: int,
        *,
        bytes_max: int,
        holder: HeldTogether | None,
        now_ms: int,
    ) -> None:
        """`bytes_max` limits the answer; `holder` is what the caller holds."""
        self._bytes_left = bytes_max
        self._is_first = True
        self.is_plain = True
        """Whether all marks so far are plain."""
        self._holder = holder
        self._lease_number = queue.counters.leases_total
        self._gatekeeper = Gatekeeper(now_ms)
        counters = queue.counters
        self._levels = [
            (level, queue.ready.first(counters, level, count)) for level in sorted(counters.levels)
        ]
        self._at = [0] * len(self._levels)

    def take(self, count: int) -> list[Entry]:
        """The entries of one lease."""
        self._lease_number += 1
        holder = self._holder
        if holder is not None:
            count = holder.allowed(count)
        sources: list[int] = []
        if len(self._levels) == 1 and self._levels[0][0] <= PRIORITY_MAX:
            start = self._at[0]
            group = self._levels[0][1][start : start + count]
        else:
            group, sources = self._merge(count, 0 if holder is None else holder.items)
        fitting = self._count_fitting(group)
        if fitting < len(group):
            group = group[:fitting]
        if len(self._levels) == 1:
            self._at[0] += fitting
        else:
            for source in sources[:fitting]:
                self._at[source] += 1
        if holder is not None:
            holder.join(group)
        return group

    def _merge(self, count: int, held: int) -> tuple[list[Entry], list[int]]:
        """The next entries of all levels that may be leased together, and the level of each."""
        is_oldest_first = self._lease_number % OLDEST_FIRST_EVERY == 0
        ahead = self._at.copy()
        group: list[Entry] = []
        sources: list[int] = []
        passed_over: set[int] = set()
        while len(group) < count:
            fronts = [
                (
                    0 if is_oldest_first else level % (PRIORITY_MAX + 1),
                    entries[ahead[source]],
                    source,
                )
                for source, (level, entries) in enumerate(self._levels)
                if source not in passed_over and ahead[source] < len(entries)
            ]
            if not fronts:
                break
            _, entry, source = min(fronts)
            verdict = self._gatekeeper.judge(entry, held + len(group))
            if verdict is Verdict.WAIT:
                break
            if verdict is Verdict.PASS_OVER:
                passed_over.add(source)
                continue
            if limit := mark_group_max(entry[1]):
                count = min(count, limit - held)
            group.append(entry)
            sources.append(source)
            ahead[source] += 1
        return group, sources

    def _count_fitting(self, group: list[Entry]) -> int:
        """How many of the first entries fit into the answer."""
        marks = [mark for _, mark in group]
        needed = {mark: mark_size(mark) + ITEM_WIRE_BYTES for mark in set(marks)}
        self.is_plain = self.is_plain and all(map(is_plain, needed))
        total = sum([needed[mark] for mark in marks])
        fitting = len(group)
        if total > self._bytes_left:
            left, fitting = self._bytes_left, 0
            for fitting, mark in enumerate(marks):
                if needed[mark] > left and (fitting or not self._is_first):
                    break
                left -= needed[mark]
            else:
                fitting = len(group)
            total = self._bytes_left - left
        self._bytes_left -= total
        self._is_first = self._is_first and not fitting
        return fitting

    def taken(self) -> list[tuple[int, list[Entry]]]:
        """The entries that were taken of each level."""
        return [
            (level, entries[:at])
            for (level, entries), at in zip(self._levels, self._at, strict=True)
            if at
        ]
