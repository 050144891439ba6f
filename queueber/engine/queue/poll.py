"""Poll: lease ready items. Only small entries are rewritten, never the contents."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate, chain, islice, takewhile
from typing import cast

from queueber.db.families import Family
from queueber.db.records.items import decode_details, decode_items, unpack_attributes
from queueber.db.records.keys import (
    MARK_ATTEMPTS_MAX,
    TIME_BYTES,
    Entry,
    Mark,
    is_plain,
    mark_attempts,
    mark_batch,
    mark_group_max,
    mark_has_details,
    mark_size,
)
from queueber.engine.queue.isolation import HeldTogether, Verdict, judge
from queueber.engine.queue.queue_state import QueueState, QueueTx
from queueber.errors import invariant
from queueber.ids import ItemId, LeaseId
from queueber.limits import ITEM_WIRE_BYTES, OLDEST_FIRST_EVERY, PRIORITY_MAX
from queueber.model import NO_DETAILS, NOTHING_POLLED, ItemDetails, Polled

_NO_ATTRIBUTES: dict[str, str] = {}


def poll(
    tx: QueueTx,
    counts: Sequence[int],
    *,
    lease_ms: int,
    answer_bytes_max: int,
    holder: HeldTogether | None = None,
) -> list[Polled]:
    """Serve several polls in order, each under a lease of its own, until no item is ready.

    The contents of all answers together stay below `answer_bytes_max`, but the first item is always
    among them: otherwise nobody could ever get an item larger than the limit. `holder` is what the
    caller holds already, if its leases end together.
    """
    queue, now_ms = tx.queue, tx.now_ms
    if not queue.counters.ready or queue.is_paused(now_ms):
        return [NOTHING_POLLED] * len(counts)
    selection = Selection(
        queue, sum(counts), bytes_max=answer_bytes_max, holder=holder, now_ms=now_ms
    )
    groups = list(takewhile(bool, map(selection.take, counts)))
    if not groups:
        return [NOTHING_POLLED] * len(counts)

    lease_ids = cast("list[LeaseId]", tx.ids.mint(len(groups), now_ms))
    sliced = [[due[TIME_BYTES:] for due, _ in group] for group in groups]
    ids_of = cast("list[list[ItemId]]", sliced)
    marks_of = [[mark for _, mark in group] for group in groups]
    queue.leases.put(tx, lease_ids, ids_of, marks_of, now_ms + lease_ms)
    ids = list(chain.from_iterable(ids_of))
    contents, records = _read(tx, ids)
    answers: list[Polled] = []
    rest = iter(contents)
    for lease_id, of_lease, marks in zip(lease_ids, ids_of, marks_of, strict=True):
        details = NO_DETAILS if selection.is_plain else _details(tx, of_lease, marks, records)
        answers.append(Polled(lease_id, of_lease, list(islice(rest, len(of_lease))), details))
    for level, taken in selection.taken():
        queue.ready.take_first(tx, level, taken)
    tx.counters.polled_total += len(ids)
    tx.counters.last_id = lease_ids[-1]
    answers.extend([NOTHING_POLLED] * (len(counts) - len(answers)))
    return answers


def _read(tx: QueueTx, ids: Sequence[ItemId]) -> tuple[list[bytes], dict[ItemId, bytes]]:
    """The contents of items, and by id the records of those that were not cached."""
    cached = tx.queue.ready.take_contents(ids)
    if None not in cached:
        return cached, {}  # type: ignore[return-value]
    missing = [item_id for item_id, known in zip(ids, cached, strict=True) if known is None]
    # Items that were added one after the other are neighbours in the store.
    stored = tx.store.get_neighbours(Family.ITEMS, [tx.prefix + each for each in missing])
    invariant(None not in stored, "I2", queue=tx.queue.name, missing=stored.count(None))
    records = cast("list[bytes]", stored)
    decoded = iter(decode_items(records))
    contents = [next(decoded) if known is None else known for known in cached]
    return contents, dict(zip(missing, records, strict=True))


def _details(
    tx: QueueTx, ids: list[ItemId], marks: list[Mark], records: dict[ItemId, bytes]
) -> ItemDetails:
    keys, attributes = [""] * len(marks), [_NO_ATTRIBUTES] * len(marks)
    for at, mark in enumerate(marks):
        if mark_has_details(mark):
            key, packed = decode_details(records[ids[at]])
            keys[at] = key.decode()
            attributes[at] = unpack_attributes(packed) if packed else _NO_ATTRIBUTES
    attempts = [min(mark_attempts(mark) + 1, MARK_ATTEMPTS_MAX) for mark in marks]
    name = tx.queue.batches.names.name
    batches = [name(mark_batch(mark)) for mark in marks]
    return ItemDetails(
        attempts=attempts if max(attempts) > 1 else (),
        keys=keys if any(keys) else (),
        batches=batches if any(batches) else (),
        attributes=attributes if any(attributes) else (),
    )


class Selection:
    """Which ready items the polls of one call get.

    Higher priorities come first, and within one the item that has been visible longest. So that
    lower ones do not starve, one lease in `OLDEST_FIRST_EVERY` takes those that have been visible
    longest, whatever their priority. `isolation.py` says which items a holder may get together.
    """

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
        self._now_ms = now_ms
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
        group = group[: self._count_fitting(group)]
        if sources:
            for source in sources[: len(group)]:
                self._at[source] += 1
        elif group:
            self._at[0] += len(group)
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
            verdict = judge(entry, held + len(group), self._now_ms)
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
        sizes = [needed[mark] for mark in marks]
        total, fitting = sum(sizes), len(sizes)
        if total > self._bytes_left:
            ends = list(accumulate(sizes))
            fitting = max(bisect_right(ends, self._bytes_left), int(self._is_first))
            total = ends[fitting - 1] if fitting else 0
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
