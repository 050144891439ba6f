"""Choice: which ready items a poll gets, and how many may go together.

Higher priorities come first, and within one the item that has been visible longest. So that lower
ones do not starve, one lease in `OLDEST_FIRST_EVERY` takes those that have been visible longest,
whatever their priority.

An item whose mark names a largest group is a suspect: it was held by somebody who died. It is given
only into as large a company, itself counted; see `expire.py`. Leases that end together, because
they are bound to one connection, are one company.
"""

from dataclasses import dataclass
from itertools import islice

from queueber.db.families import Family
from queueber.db.keys import level_part
from queueber.db.marks import PLAIN_TAIL, SIZE_BYTES, mark_group_max
from queueber.db.records import decode_lease, split_held
from queueber.engine.ready_window import Entry
from queueber.engine.state import Engine, QueueState
from queueber.limits import ITEM_WIRE_BYTES, OLDEST_FIRST_EVERY


@dataclass(slots=True)
class Company:
    """What somebody holds already, and will lose together with what it is given now."""

    items: int = 0
    group_max: int = 0
    """How many they may be, given who is among them; 0: no limit."""

    def join(self, group: list[Entry]) -> None:
        self.items += len(group)
        limits = [self.group_max, *(mark_group_max(mark) for _, mark in group)]
        self.group_max = min((limit for limit in limits if limit), default=0)


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
        self, engine: Engine, queue: QueueState, count: int, room: int, company: Company | None
    ) -> None:
        """`room` is how many bytes the answer may have."""
        self._room = room
        self._is_first = True
        self.is_plain = True
        """Whether all marks that were looked at are plain."""
        self._company = company
        self._turn = queue.counters.leases_total
        self._levels: list[tuple[int, list[Entry]]] = []
        for level, (_, low) in sorted(queue.counters.levels.items()):
            window = queue.windows[level]
            window.fill(engine.store, queue.prefix + level_part(level), low, count)
            self._levels.append((level, list(islice(window.entries, count))))
        self._at = [0] * len(self._levels)

    def take(self, count: int) -> list[Entry]:
        """The entries of one lease."""
        self._turn += 1
        if len(self._levels) == 1:
            start = self._at[0]
            candidates = self._levels[0][1][start : start + count]
            fitting = self._count_fitting(candidates)
            self._at[0] = start + fitting
        else:
            candidates, sources = self._merge(count)
            fitting = self._count_fitting(candidates)
            for source in sources[:fitting]:
                self._at[source] += 1
        group = candidates[:fitting] if fitting < len(candidates) else candidates
        if self._company is not None:
            self._company.join(group)
        return group

    def _merge(self, count: int) -> tuple[list[Entry], list[int]]:
        """The next entries of all levels, and which level each is of."""
        is_oldest_first = self._turn % OLDEST_FIRST_EVERY == 0
        ahead = self._at.copy()
        candidates: list[Entry] = []
        sources: list[int] = []
        for _ in range(count):
            waiting = [
                source
                for source, (_, entries) in enumerate(self._levels)
                if ahead[source] < len(entries)
            ]
            if not waiting:
                break
            source = waiting[0]
            if is_oldest_first:
                source = min(waiting, key=lambda each: self._levels[each][1][ahead[each]])
            candidates.append(self._levels[source][1][ahead[source]])
            sources.append(source)
            ahead[source] += 1
        return candidates, sources

    def _count_fitting(self, candidates: list[Entry]) -> int:
        """How many of the first candidates may go together, and into the answer."""
        count_max, others = len(candidates), 0
        if self._company is not None:
            others = self._company.items
            if self._company.group_max:
                count_max = min(count_max, max(0, self._company.group_max - others))
        room, is_first = self._room, self._is_first
        for at, (_, mark) in enumerate(candidates):
            if mark[SIZE_BYTES:] != PLAIN_TAIL:
                self.is_plain = False
                limit = mark_group_max(mark)
                if limit:
                    count_max = min(count_max, limit - others) if limit > at + others else at
            if at >= count_max:
                break
            needed = int.from_bytes(mark[:SIZE_BYTES]) + ITEM_WIRE_BYTES
            if needed > room and not is_first:
                count_max = at
                break
            room -= needed
            is_first = False
        self._room, self._is_first = room, is_first
        return count_max

    def taken(self) -> list[tuple[int, list[Entry]]]:
        """What was taken of each level."""
        return [
            (level, entries[:at])
            for (level, entries), at in zip(self._levels, self._at, strict=True)
            if at
        ]
