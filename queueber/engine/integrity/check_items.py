"""The check of a queue's items: each is in one state, leases are whole, the counters are right."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Protocol

from queueber.db.families import Family
from queueber.db.records import keys
from queueber.db.records.attempts import decode_attempts
from queueber.db.records.blocks import bits_of
from queueber.db.records.leases import decode_lease
from queueber.db.records.remembered import DIGEST_MODULUS, ids_digest
from queueber.db.records.runs import (
    Run,
    count_items,
    decode_held,
    mark_attempts,
    mark_batch,
    mark_expires,
    mark_group_max,
    mark_has_details,
    mark_has_options,
    mark_holds_slot,
    mark_is_parked,
    mark_level,
)
from queueber.engine.integrity.check_blocks import BlocksCheck
from queueber.engine.integrity.check_options import OptionsCheck
from queueber.engine.integrity.queue_entries import CheckedQueue, Violation
from queueber.engine.integrity.states import NO_ITEMS, LiveItems, StateRun, block_of, read_states
from queueber.engine.integrity.stored_blocks import BlockCache, StoredBlock
from queueber.ids import ItemId
from queueber.limits import ATTEMPTS_CEILING

COUNTED = (
    "ready", "delayed", "leased", "dead", "leases", "contents_bytes", "quarantined", "slots",
    "parked", "expiring",
)  # fmt: skip

_RUNS_TOGETHER = 1000
_UNFINISHED_MAX = 100_000


class BlocksRead(Protocol):
    """Blocks by their last ids, which are fetched before they are looked at."""

    def fetch(self, blocks: Sequence[ItemId]) -> None: ...
    def __getitem__(self, block: ItemId) -> StoredBlock | None: ...


class ItemsCheck:
    def __init__(self, queue: CheckedQueue, blocks: BlocksRead | None = None) -> None:
        self._queue = queue
        self._broken = queue.broken
        self._entries = queue.entries
        self._counters = queue.counters
        self._counted = queue.counters.copy()
        for number in COUNTED:
            setattr(self._counted, number, 0)
        self._level_counts: dict[int, int] = {}
        self._blocks = blocks or BlockCache(queue.entries)
        self._digest = 0
        """A sum over the ids of runs: equal to that over the ids in blocks, if both have the same
        ids equally often, in any order."""
        self._unfinished: dict[ItemId, int] = {}
        """Of blocks with runs here and there: the bits of the runs that were found so far."""
        self._placed = self._failed = 0
        self._options = OptionsCheck(queue)
        self.batches: dict[int, LiveItems] = {}

    def run(self) -> Iterator[Violation]:
        blocks = BlocksCheck(self._queue)
        yield from blocks.run()
        self._counted.contents_bytes = blocks.contents_bytes
        yield from self._check_entries()
        yield from self._check_sums(blocks)
        yield from self._check_counts(blocks.items)

    def _check_entries(self) -> Iterator[Violation]:
        for family in (Family.VISIBILITY_INDEX, Family.DELAYED, Family.DEAD):
            for chunk in self._entries.chunks(family):
                states = [state for each in chunk for state in read_states(family, *each)]
                yield from self._check_runs(states)
                for state in states:
                    yield from self._check_state(state)
        yield from self._check_leases()
        yield from self._check_expiry()

    # --- runs in any state ------------------------------------------------------------------------

    def _check_runs(self, states: Sequence[StateRun]) -> Iterator[Violation]:
        blocks = [block_of(state.run) for state in states]
        self._blocks.fetch([block for block in blocks if block is not None])
        places = self._entries.get_many(Family.PLACES, [state.run.last for state in states])
        for state, block, place in zip(states, blocks, places, strict=True):
            found = None if block is None else self._blocks[block]
            yield from self._check_run(state, found, place)

    def _check_run(
        self, state: StateRun, block: StoredBlock | None, place: bytes | None
    ) -> Iterator[Violation]:
        run, mark = state.run, state.run.mark
        where = f"{state.family.family_name} has {run.count} items up to {run.last.hex()}"
        self._digest += ids_digest(run.last, run.count)
        yield from self._check_fit(where, state, block)
        if mark_attempts(mark):
            self._failed += run.count
            if block is not None:
                yield from self._check_histories(where, run)
        if mark_has_options(mark) or mark_expires(mark):
            self._counted.expiring += run.count if mark_expires(mark) else 0
            yield from self._options.check_run(where, state)
        self._counted.slots += run.count if mark_holds_slot(mark) else 0
        self._counted.parked += run.count if mark_is_parked(mark) else 0
        if state.family is not Family.DEAD:
            self._counted.quarantined += run.count if mark_group_max(mark) else 0
            if number := mark_batch(mark):
                self.batches[number] = self.batches.get(number, NO_ITEMS).plus(run)
        expected = None
        if state.due and not keys.is_where_its_id_says(state.due):
            expected = state.due[: keys.TIME_BYTES]
            self._placed += 1
        if place != expected:
            yield self._broken("I9", f"{where}, but places says {place!r}")

    def _check_fit(
        self, where: str, state: StateRun, block: StoredBlock | None
    ) -> Iterator[Violation]:
        run = state.run
        if block is None:
            yield self._broken("I2", f"{where}, but no block that they are in")
            return
        for text in misfits(run, block):
            yield self._broken("I2", f"{where}, {text}")
        if run.span == block.span and not self._find_in(block, run):
            yield self._broken("I14", f"{where}, but other runs have some of them")

    def _find_in(self, block: StoredBlock, run: Run) -> bool:
        """Whether no other run of an unfinished block was found to have one of the items.

        A block is finished when all that is left of it was found: it needs no memory any more. The
        sums tell if more of it follows.
        """
        bits = bits_of(run.at, run.count)
        before = self._unfinished.pop(block.last, 0)
        if before | bits != block.left and len(self._unfinished) < _UNFINISHED_MAX:
            self._unfinished[block.last] = before | bits
        return not before & bits

    def _check_histories(self, where: str, run: Run) -> Iterator[Violation]:
        """Runs that never failed need no look: there are as many histories as failed items."""
        ids, attempts = run.ids, mark_attempts(run.mark)
        histories = self._entries.get_many(Family.ATTEMPTS, ids)
        for item_id, history in zip(ids, histories, strict=True):
            times = 0 if history is None else len(decode_attempts(history).times_ms)
            if times != min(attempts, ATTEMPTS_CEILING):
                text = f"{where} with {attempts} attempts, but {times} times of {item_id.hex()}"
                yield self._broken("I11", text)

    # --- runs in one state ------------------------------------------------------------------------

    def _check_state(self, state: StateRun) -> Iterator[Violation]:
        """Count the items of a run that is not leased, and check that it is where it says."""
        run, due, level, family = state.run, state.due, state.level, state.family
        if due is None:
            self._counted.dead += run.count
            return
        if family is Family.DELAYED:
            self._counted.delayed += run.count
            low = keys.time_part(self._counters.delayed_due_ms)
        else:
            self._counted.ready += run.count
            self._level_counts[level] = self._level_counts.get(level, 0) + run.count
            if level != mark_level(run.mark):
                yield self._broken("I2", f"{run.last.hex()} is ready in level {level}")
            _, low = self._counters.levels.get(level, (0, b""))
        if due < low:
            text = f"{family.family_name} has {due.hex()} before its first known entry"
            yield self._broken("I6", text)

    def _check_leases(self) -> Iterator[Violation]:
        holders = 0
        for lease_id, value in self._entries.walk(Family.LEASES):
            self._counted.leases += 1
            expires_at_ms, held = decode_lease(value)
            runs = decode_held(held)
            self._counted.leased += count_items(runs)
            if not runs:
                yield self._broken("I3", f"lease {lease_id.hex()} holds nothing")
                continue
            for at in range(0, len(runs), _RUNS_TOGETHER):
                part = runs[at : at + _RUNS_TOGETHER]
                yield from self._check_runs([StateRun(Family.LEASES, run) for run in part])
            if _overlap(runs):
                yield self._broken("I3", f"lease {lease_id.hex()} holds an item twice")
            for block in {block_of(run) for run in runs} - {None}:
                holders += 1
                if self._entries.get(Family.HOLDERS, (block or b"") + lease_id) is None:
                    text = f"holders misses {lease_id.hex()} for {(block or b'').hex()}"
                    yield self._broken("I3", text)
            expiry = keys.due_part(expires_at_ms, lease_id)
            if self._entries.get(Family.LEASE_EXPIRY, expiry) is None:
                yield self._broken("I4", f"lease {lease_id.hex()} has no expiry entry")
            if lease_id > self._counters.last_id:
                yield self._broken("I8", f"lease {lease_id.hex()} is newer than last_id")
        found = self._entries.count(Family.HOLDERS)
        if found != holders:
            yield self._broken("I3", f"{found} entries in holders, but leases need {holders}")

    def _check_expiry(self) -> Iterator[Violation]:
        for due, _ in self._entries.walk(Family.LEASE_EXPIRY):
            at_ms, lease_id = keys.split_due_part(due)
            lease = self._entries.get(Family.LEASES, lease_id)
            if lease is None or decode_lease(lease)[0] != at_ms:
                yield self._broken("I4", f"expiry entry {due.hex()} has no lease")
            if at_ms < self._counters.lease_due_ms:
                text = f"lease_expiry has {due.hex()} before its first known entry"
                yield self._broken("I6", text)

    # --- sums -------------------------------------------------------------------------------------

    def _check_sums(self, blocks: BlocksCheck) -> Iterator[Violation]:
        counted = self._counted.items
        if blocks.items != counted:
            yield self._broken("I1", f"{blocks.items} items in blocks, but {counted} in runs")
        elif (blocks.digest - self._digest) % DIGEST_MODULUS:
            yield self._broken("I1", "some items are in several runs, and others in none")
        else:
            return
        for block, bits in self._unfinished.items():
            text = f"runs of block {block.hex()} have the bits {bits:x}, and not all that is left"
            yield self._broken("I1", text)

    def _check_counts(self, items: int) -> Iterator[Violation]:
        counted, kept = self._counted, self._counters
        levels = {level: count for level, (count, _) in kept.levels.items()}
        if counted != kept or levels != self._level_counts:
            yield self._broken("I5", f"counted {counted} {self._level_counts}, kept {kept}")
        ended = kept.removed_total + kept.completed_total + kept.cancelled_total
        ended += kept.dead_dropped_total
        if items != kept.added_total - ended:
            yield self._broken("I5", f"{items} items, but {kept.added_total} added, {ended} ended")
        places = self._entries.count(Family.PLACES)
        if places != self._placed:
            yield self._broken("I9", f"{places} places, but {self._placed} runs need one")
        histories = self._entries.count(Family.ATTEMPTS)
        if histories != self._failed:
            yield self._broken("I11", f"{histories} histories, but {self._failed} items failed")
        yield from self._options.check_sums()


def misfits(run: Run, block: StoredBlock) -> Iterator[str]:
    """In which ways a run is not one of its block."""
    if run.span != block.span:
        yield f"in a block of {run.span} ids, which has {block.span}"
        return
    if bits_of(run.at, run.count) & ~(block.left & block.present):
        yield "of which some are gone"
    if run.size != (size := block.size(run.at, run.at + run.count)):
        yield f"of {run.size} bytes, which have {size}"
    if mark_has_details(run.mark) != block.has_details:
        yield "whose mark is wrong about details"


def _overlap(runs: Sequence[Run]) -> bool:
    ends = sorted([(int.from_bytes(run.last), run.count) for run in runs])
    return any(last - count < before for (before, _), (last, count) in pairwise(ends))
