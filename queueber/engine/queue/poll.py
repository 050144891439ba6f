"""Poll: lease ready items. Only small entries are rewritten, never the contents."""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import takewhile
from typing import cast

from queueber.db.records.blocks import unpack_attributes
from queueber.db.records.cutting import join
from queueber.db.records.item_options import StoredOptions
from queueber.db.records.runs import (
    MARK_ATTEMPTS_MAX,
    Entry,
    Run,
    count_items,
    mark_attempts,
    mark_batch,
    mark_expires,
    mark_group_max,
    mark_has_details,
    mark_has_nothing_to_tell,
    mark_uncharged,
)
from queueber.engine.caps.parks import Parks
from queueber.engine.queue.blocks import BlockReader
from queueber.engine.queue.fronts import Front, GrowingFront, LevelFront
from queueber.engine.queue.isolation import HeldTogether, Verdict, judge
from queueber.engine.queue.options import NONE_STORED, options_of
from queueber.engine.queue.queue_state import QueueState, QueueTx
from queueber.engine.queue.unclaimed import Claims
from queueber.ids import LeaseId
from queueber.limits import ITEM_WIRE_BYTES, OLDEST_FIRST_EVERY, PARKED_LEVEL, PRIORITY_MAX
from queueber.model import NO_DETAILS, NOTHING_POLLED, ItemDetails, PackedItems, Polled

_NO_ATTRIBUTES: dict[str, str] = {}


def poll(
    tx: QueueTx,
    counts: Sequence[int],
    *,
    lease_ms: int,
    answer_bytes_max: int,
    holder: HeldTogether | None = None,
    partition: int | None = None,
) -> list[Polled]:
    """Serve several polls in order, each under a lease of its own, until no item is ready.

    The contents of all answers together stay below `answer_bytes_max`, but the first item is always
    among them: otherwise nobody could ever get an item larger than the limit. `holder` is what the
    caller holds already, if its leases end together. Of a group that shares messages, a poll may be
    for one `partition`, and gets a window of it.
    """
    queue, now_ms = tx.queue, tx.now_ms
    undelivered = queue.undelivered
    if undelivered is not None:
        counts = undelivered.allowed(tx, counts)
    has_some = queue.counters.ready or (undelivered is not None and undelivered.count(partition))
    if not has_some or queue.is_paused(now_ms):
        return [NOTHING_POLLED] * len(counts)
    caps = queue.caps
    if caps is not None:
        counts = caps.allowed(tx, counts)
        if not counts[0]:
            return [NOTHING_POLLED] * len(counts)
    blocks = queue.blocks.reader()
    selection = Selection(
        queue,
        blocks,
        sum(counts),
        bytes_max=answer_bytes_max,
        holder=holder,
        now_ms=now_ms,
        partition=partition,
        parks=None if caps is None or caps.keys is None else Parks(tx, caps.keys),
        claims=Claims(tx) if queue.counters.expiring else None,
    )
    groups = list(takewhile(bool, map(selection.take, counts)))
    if not groups:
        if undelivered is not None or selection.parks or selection.claims:
            # Of messages that are deleted, and of items that are parked now, or expired.
            selection.take_out(tx)
        return [NOTHING_POLLED] * len(counts)

    blocks.fetch([run for runs in groups for run in runs])
    leases = list(zip(cast("list[LeaseId]", tx.ids.mint(len(groups), now_ms)), groups, strict=True))
    queue.leases.put(tx, leases, now_ms + lease_ms)
    answers = [_answer(tx, lease_id, runs, blocks) for lease_id, runs in leases]
    selection.take_out(tx)
    polled = sum(map(count_items, groups))
    tx.counters.polled_total += polled
    if caps is not None:
        caps.leased(tx, polled)
    tx.counters.last_id = leases[-1][0]
    answers.extend([NOTHING_POLLED] * (len(counts) - len(answers)))
    return answers


def _answer(tx: QueueTx, lease_id: LeaseId, runs: Sequence[Run], blocks: BlockReader) -> Polled:
    packed = [
        PackedItems(run.last, run.count, *blocks[run].packed(run.at, run.count)) for run in runs
    ]
    return Polled(lease_id, packed, _details(tx, runs, blocks))


def _details(tx: QueueTx, runs: Sequence[Run], blocks: BlockReader) -> ItemDetails:
    if all(mark_has_nothing_to_tell(run.mark) for run in runs):
        return NO_DETAILS
    attempts: list[int] = []
    deliveries: list[int] = []
    batches: list[str] = []
    keys: list[str] = []
    attributes: list[dict[str, str]] = []
    name = tx.queue.batches.names.name
    options = options_of(tx, runs)
    for run in runs:
        mark, count = run.mark, run.count
        attempt = min(mark_attempts(mark) + 1, MARK_ATTEMPTS_MAX)
        attempts += [attempt] * count
        deliveries += [attempt + mark_uncharged(mark)] * count
        batches += [name(mark_batch(mark))] * count
        if mark_has_details(mark):
            stored_keys, packed = blocks[run].details(run.at, count)
            keys += [key.decode() for key in stored_keys]
            attributes += [unpack_attributes(p) if p else _NO_ATTRIBUTES for p in packed]
        else:
            keys += [""] * count
            attributes += [_NO_ATTRIBUTES] * count
    return ItemDetails(
        attempts=attempts if max(attempts) > 1 else (),
        keys=keys if any(keys) else (),
        batches=batches if any(batches) else (),
        attributes=attributes if any(attributes) else (),
        deliveries=deliveries if deliveries != attempts else (),
        timeouts_ms=_timeouts(runs, options) if options else (),
    )


def _timeouts(runs: Sequence[Run], options: Mapping[bytes, StoredOptions]) -> Sequence[int]:
    """The time limit of each item; empty if none has one of its own."""
    column = [options.get(item_id, NONE_STORED).timeout_ms for run in runs for item_id in run.ids]
    return column if any(column) else ()


class Selection:
    """Which ready items the polls of one call get.

    Higher priorities come first, and within one the item that has been visible longest. So that
    lower ones do not starve, one lease in `OLDEST_FIRST_EVERY` takes those that have been visible
    longest, whatever their priority. `isolation.py` says which items a holder may get together.
    """

    def __init__(
        self,
        queue: QueueState,
        blocks: BlockReader,
        count: int,
        *,
        bytes_max: int,
        holder: HeldTogether | None,
        now_ms: int,
        partition: int | None = None,
        parks: Parks | None = None,
        claims: Claims | None = None,
    ) -> None:
        """`bytes_max` limits the answer; `holder` is what the caller holds; `parks` takes what must
        wait, in a queue with caps by an attribute; `claims` takes what has expired, in one that has
        such items."""
        self._queue = queue
        self._blocks = blocks
        self._bytes_left = bytes_max
        self._is_first = True
        self._holder = holder
        self._lease_number = queue.counters.leases_total
        self._now_ms = now_ms
        counters = queue.counters
        self.parks = parks
        self.claims = claims
        self._fronts: Sequence[Front]
        if parks is not None:
            self._fronts = [
                GrowingFront(level, count, partial(queue.ready.first, counters, level))
                for level in sorted(counters.levels)
                if level < PARKED_LEVEL
            ]
        elif queue.undelivered is None:
            self._fronts = [
                LevelFront(level, queue.ready.first(counters, level, count))
                for level in sorted(counters.levels)
            ]
        else:
            self._fronts = queue.undelivered.fronts(queue, blocks, count, partition)

    def take(self, count: int) -> list[Run]:
        """The runs of one lease."""
        self._lease_number += 1
        holder = self._holder
        held = 0
        if holder is not None:
            count, held = holder.allowed(count), holder.items
        group: list[Run] = []
        taken = 0
        passed_over: set[Front] = set()
        while taken < count:
            front = self._next_front(passed_over)
            if front is None:
                break
            due, run = front.first
            if limit := mark_group_max(run.mark):
                verdict = judge(due, limit, held + taken, self._now_ms)
                if verdict is Verdict.WAIT:
                    break
                if verdict is Verdict.PASS_OVER:
                    passed_over.add(front)
                    continue
                count = min(count, limit - held)
            was_first = self._is_first
            got = self._take_fitting(front, run, min(run.count, count - taken))
            if got is None:
                break
            if self.parks is None and not mark_expires(got.mark):
                group.append(got)
                taken += got.count
                continue
            kept = self._split(due, got)
            group += kept
            taken += count_items(kept)
            # An item that is too large for any answer is given alone, whatever was parked before.
            self._is_first = was_first and not group
            if any(each is not None and each.is_full for each in (self.parks, self.claims)):
                break
        if holder is not None:
            holder.join(group)
        return join(group) if len(group) > 1 else group

    def _split(self, due: bytes, run: Run) -> Sequence[Run]:
        """The items of a run that are leased: others are parked, or have expired."""
        kept: Sequence[Run] = [run]
        late: Sequence[Run] = ()
        waiting: Sequence[Run] = ()
        if self.claims is not None:
            kept, late = self.claims.split(due, run, self._blocks)
        if self.parks is not None:
            parts = [self.parks.split(due, each, self._blocks) for each in kept]
            kept = [each for leased, _ in parts for each in leased]
            waiting = [each for _, parked in parts for each in parked]
        for each in (*late, *waiting):
            self._bytes_left += each.size + each.count * ITEM_WIRE_BYTES
        return kept if self.claims is None else self.claims.claim(kept)

    def _next_front(self, passed_over: set[Front]) -> Front | None:
        """The level whose first items are next."""
        fronts = [each for each in self._fronts if each.has_items]
        if passed_over:
            fronts = [each for each in fronts if each not in passed_over]
        if len(fronts) < 2:
            return fronts[0] if fronts else None
        is_oldest_first = self._lease_number % OLDEST_FIRST_EVERY == 0

        def order(front: Front) -> tuple[int, Entry]:
            return 0 if is_oldest_first else front.level % (PRIORITY_MAX + 1), front.first

        return min(fronts, key=order)

    def _take_fitting(self, front: Front, run: Run, count: int) -> Run | None:
        """The first of `count` items of a front that fit into the answer; None if none does."""
        taken, rest = front.cut(count, self._blocks)
        needed = taken.size + taken.count * ITEM_WIRE_BYTES
        if needed > self._bytes_left:
            fitting = self._blocks[run].fitting(
                run.at, count, self._bytes_left, extra=ITEM_WIRE_BYTES
            )
            if not fitting and not self._is_first:
                return None
            taken, rest = front.cut(max(fitting, 1), self._blocks)
            needed = taken.size + taken.count * ITEM_WIRE_BYTES
        front.take(rest)
        self._bytes_left -= needed
        self._is_first = False
        return taken

    def take_out(self, tx: QueueTx) -> None:
        """Take what the polls got out of the index."""
        for front in self._fronts:
            front.take_out(tx, self._blocks)
        if self.parks is not None:
            self.parks.take_in()
        if self.claims is not None:
            self.claims.take_in()
