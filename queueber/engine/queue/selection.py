"""Choice: which ready items a poll gets, and how many may go together.

Higher priorities come first, and within one the item that has been visible longest. So that lower
ones do not starve, one lease in `OLDEST_FIRST_EVERY` takes those that have been visible longest,
whatever their priority.

An item whose mark names a largest group is a suspect: it was held by somebody who died. It is given
only into as large a company, itself counted; see `expire.py`. Leases that end together, because
they are bound to one connection, are one company. A suspect that does not fit is passed over for
`SUSPECT_PATIENCE_MS`; then nothing that stands behind it is given before it, so that the company
becomes smaller and it has its turn.
"""

from dataclasses import dataclass

from queueber.db.families import Family
from queueber.db.records.keys import due_part
from queueber.db.records.leases import decode_lease, split_held
from queueber.db.records.marks import is_plain, mark_group_max, mark_size
from queueber.engine.kernel.state import Engine, QueueState
from queueber.engine.queue.ready_window import Entry
from queueber.limits import (
    ITEM_WIRE_BYTES,
    OLDEST_FIRST_EVERY,
    PRIORITY_MAX,
    SUSPECT_PATIENCE_MS,
)


@dataclass(slots=True)
class Company:
    """What somebody holds already, and will lose together with what it is given now."""

    items: int = 0
    group_max: int = 0
    """How many they may be, given who is among them; 0: no limit."""

    def join(self, group: list[Entry]) -> None:
        limits = [limit for _, mark in group if (limit := mark_group_max(mark))]
        self.merge(Company(len(group), min(limits, default=0)))

    def merge(self, other: "Company") -> None:
        self.items += other.items
        limits = [limit for limit in (self.group_max, other.group_max) if limit]
        self.group_max = min(limits, default=0)


def company_of(engine: Engine, queue: QueueState, leases: list[bytes]) -> Company:
    """Those of the leases that are still there."""
    company = Company()
    keys = [queue.prefix + lease_id for lease_id in leases]
    for entry in engine.store.get_many(Family.LEASES, keys) if keys else []:
        if entry is not None:
            company.join(split_held(decode_lease(entry)[1]))
    return company


class Choice:
    """Which entries the polls of one call get."""

    def __init__(
        self,
        engine: Engine,
        queue: QueueState,
        count: int,
        *,
        room: int,
        company: Company | None,
        now_ms: int,
    ) -> None:
        """`room` is how many bytes the answer may have."""
        self._room = room
        self._is_first = True
        self.is_plain = True
        """Whether all marks that were looked at are plain."""
        self._company = company
        self._turn = queue.counters.leases_total
        self._impatient_before = due_part(max(0, now_ms - SUSPECT_PATIENCE_MS), b"")
        self._levels = [
            (level, queue.first_ready(engine.store, level, count))
            for level in sorted(queue.counters.levels)
        ]
        self._at = [0] * len(self._levels)

    def take(self, count: int) -> list[Entry]:
        """The entries of one lease."""
        self._turn += 1
        others, count = self._allowed(count)
        sources: list[int] = []
        if len(self._levels) == 1 and self._levels[0][0] <= PRIORITY_MAX:
            start = self._at[0]
            group = self._levels[0][1][start : start + count]
        else:
            group, sources = self._merge(count, others)
        fitting = self._count_fitting(group)
        if fitting < len(group):
            group = group[:fitting]
        if len(self._levels) == 1:
            self._at[0] += fitting
        else:
            for source in sources[:fitting]:
                self._at[source] += 1
        if self._company is not None:
            self._company.join(group)
        return group

    def _allowed(self, count: int) -> tuple[int, int]:
        """How many the caller holds already, and how many it may be given beside them."""
        if self._company is None:
            return 0, count
        others, group_max = self._company.items, self._company.group_max
        return others, min(count, max(0, group_max - others)) if group_max else count

    def _merge(self, count: int, others: int) -> tuple[list[Entry], list[int]]:
        """The next entries of all levels that go together, and which level each is of."""
        is_oldest_first = self._turn % OLDEST_FIRST_EVERY == 0
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
            limit = mark_group_max(entry[1])
            if limit and limit <= others + len(group):
                if entry[0] < self._impatient_before:
                    break
                passed_over.add(source)
                continue
            if limit:
                count = min(count, limit - others)
            group.append(entry)
            sources.append(source)
            ahead[source] += 1
        return group, sources

    def _count_fitting(self, group: list[Entry]) -> int:
        """How many of the first entries go into the answer."""
        marks = [mark for _, mark in group]
        needed = {mark: mark_size(mark) + ITEM_WIRE_BYTES for mark in set(marks)}
        self.is_plain = self.is_plain and all(map(is_plain, needed))
        total = sum([needed[mark] for mark in marks])
        fitting = len(group)
        if total > self._room:
            room, fitting = self._room, 0
            for fitting, mark in enumerate(marks):
                if needed[mark] > room and (fitting or not self._is_first):
                    break
                room -= needed[mark]
            else:
                fitting = len(group)
            total = self._room - room
        self._room -= total
        self._is_first = self._is_first and not fitting
        return fitting

    def taken(self) -> list[tuple[int, list[Entry]]]:
        """What was taken of each level."""
        return [
            (level, entries[:at])
            for (level, entries), at in zip(self._levels, self._at, strict=True)
            if at
        ]
