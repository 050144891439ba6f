"""Rebuild the states of a queue's items from what is left of its families.

Every item that can be read is kept, in one state: that of the first run found that has it, where
runs that fit their block come before those that do not. An item without a run, or of a lease,
becomes ready. A run without items is dropped.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import groupby
from operator import or_

from queueber.db.families import Family
from queueber.db.records import keys
from queueber.db.records.blocks import bits_of
from queueber.db.records.queues import Counters
from queueber.db.records.runs import (
    Entry,
    Mark,
    MarkFields,
    Run,
    decode_attempts,
    decode_mark,
    encode_dead,
    encode_mark,
    encode_run,
    entry_at,
    join_entries,
    mark_batch,
    mark_group_max,
    mark_level,
    new_mark,
)
from queueber.engine.integrity.check_items import COUNTED
from queueber.engine.integrity.queue_entries import InStep, QueueEntries, QueueWrites, readable
from queueber.engine.integrity.rebuild_blocks import BlocksRebuild
from queueber.engine.integrity.states import NO_ITEMS, STATES, LiveItems, StateRun, read_states
from queueber.engine.integrity.stored_blocks import StoredBlock, stretches
from queueber.ids import ItemId, made_at_ms
from queueber.limits import ATTEMPTS_CEILING, PRIORITY_DEFAULT, PRIORITY_MAX

_REBUILT = (
    *STATES, Family.PLACES, Family.LEASE_EXPIRY, Family.HOLDERS, Family.CAP_KEYS, Family.PARKED,
)  # fmt: skip

Found = tuple[int, StateRun]
"""A run, and which of all runs it is in the order of the families and their keys."""


@dataclass(slots=True)
class ItemsRebuild:
    """Holds all runs of the queue in memory. All keys have the right lengths."""

    entries: QueueEntries
    counters: Counters
    batches: Collection[int]
    """The numbers of those that can be read."""
    completed: Mapping[ItemId, int]
    """By block: the bits of the items that have a result."""
    lost: Counter[str]
    """Counts what cannot be kept."""
    live: dict[int, LiveItems] = field(default_factory=dict)
    _writes: QueueWrites = field(init=False)

    def run(self) -> None:
        """Write every run again, and set the counts in the counters."""
        counters = self.counters
        for name in COUNTED:
            setattr(counters, name, 0)
        counters.levels = {}
        counters.caps_to_review = 0  # nothing is parked any more
        counters.lease_due_ms = counters.delayed_due_ms = keys.NEVER_MS
        if leases := self.entries.count(Family.LEASES):
            self.lost["leases ended: their items are ready again"] += leases
        found = sorted([(state.run.last, (at, state)) for at, state in enumerate(self._read())])
        self._writes = QueueWrites(self.entries)
        for family in _REBUILT:
            self._writes.delete_all(family)
        self._rebuild(InStep(found))
        self._writes.flush()

    def _read(self) -> Iterator[StateRun]:
        """Every run that can be read, in the order of the families and their keys."""
        for family in STATES:
            for key, value in self.entries.walk(family):
                states = readable(read_states, family, key, value)
                if states is None:
                    self.lost["entries that cannot be read"] += 1
                else:
                    yield from states

    def _rebuild(self, runs: InStep[Found]) -> None:
        histories = InStep(self.entries.walk(Family.ATTEMPTS))
        blocks = BlocksRebuild(self.entries, self._writes, self.completed, self.lost)
        for old in blocks.walk():
            block = old.stored
            found = sorted([each for _, each in runs.up_to(block.last)])
            sound: list[tuple[StateRun, int]] = []
            damaged: list[tuple[StateRun, int]] = []
            for _, state in found:
                claims = sound if _is_sound(state.run, block) else damaged
                claims.append((state, _claimed(state.run, block)))
            left = blocks.keep(old, reduce(or_, [bits for _, bits in sound], 0))
            attempts = self._fit_histories(block, left, histories.up_to(block.last))
            # A damaged run gets no more than the others leave.
            self._write_runs(block, left, sound + damaged, attempts)
        if count := sum(1 for _ in runs.rest()):
            self._lose_entries(count)
        for item_id, _ in histories.rest():
            self._writes.delete(Family.ATTEMPTS, item_id)

    def _lose_entries(self, count: int) -> None:
        self.lost["entries of items that cannot be read, or are gone"] += count

    def _fit_histories(
        self, block: StoredBlock, left: int, histories: Sequence[tuple[bytes, bytes]]
    ) -> dict[int, int]:
        """How often items of the block failed, by position; drop histories of no use."""
        attempts = {}
        for item_id, value in histories:
            position = block.position_of(item_id)
            times, _ = readable(decode_attempts, value) or ([], "")
            if position is not None and left >> position & 1 and 0 < len(times) <= ATTEMPTS_CEILING:
                attempts[position] = len(times)
            else:
                self._writes.delete(Family.ATTEMPTS, item_id)
        return attempts

    # --- the runs of a block ----------------------------------------------------------------------

    def _write_runs(
        self,
        block: StoredBlock,
        left: int,
        claims: Sequence[tuple[StateRun, int]],
        attempts: Mapping[int, int],
    ) -> None:
        """Give each item to the first run that claims it."""
        if left:
            self.counters.last_id = max(self.counters.last_id, block.last)
            self.counters.contents_bytes += block.size_of(left)
        all_left = left
        ready: list[Entry] = []
        delayed: list[Entry] = []
        for state, claimed in claims:
            bits = claimed & left
            left &= ~bits
            if not claimed & all_left:
                self._lose_entries(1)
            for run in self._runs(block, bits, state.run.mark, attempts):
                due_ms = made_at_ms(run.last)
                if state.due is not None:
                    due_ms = keys.split_due_part(state.due)[0]
                if state.family is Family.DEAD:
                    self._writes.put(Family.DEAD, run.last, encode_dead(*state.died, run))
                    self.counters.dead += run.count
                else:
                    entries = delayed if state.family is Family.DELAYED else ready
                    entries.append(entry_at(due_ms, run))
        if left:
            self.lost["items whose place was lost: they are ready"] += left.bit_count()
            mark = new_mark(0, PRIORITY_DEFAULT, has_details=block.has_details)
            runs = self._runs(block, left, mark, attempts)
            ready += [entry_at(made_at_ms(run.last), run) for run in runs]
        self._put_ready(join_entries(ready))
        self._put_delayed(join_entries(delayed))

    def _runs(
        self, block: StoredBlock, bits: int, mark: bytes, attempts: Mapping[int, int]
    ) -> Iterator[Run]:
        """Items that were one run: again one, unless some are gone or have failed more often."""
        old = decode_mark(mark)
        if old.batch and old.batch not in self.batches and bits:
            text = "items of a batch that cannot be read: they belong to none"
            self.lost[text] += bits.bit_count()
            old = old._replace(batch=0)
        for start, stop in stretches(bits):
            if not attempts:
                yield block.run(start, stop, _mark(old, 0, block))
                continue
            for times, group in groupby(range(start, stop), lambda at: attempts.get(at, 0)):
                positions = list(group)
                new = _mark(old, times, block)
                yield block.run(positions[0], positions[-1] + 1, new)

    def _count_live(self, due: bytes, run: Run) -> None:
        """What holds for ready and delayed runs."""
        if number := mark_batch(run.mark):
            self.live[number] = self.live.get(number, NO_ITEMS).plus(run)
        self.counters.quarantined += run.count if mark_group_max(run.mark) else 0
        if not keys.is_where_its_id_says(due):
            self._writes.put(Family.PLACES, run.last, due[: keys.TIME_BYTES])

    def _put_ready(self, entries: Sequence[Entry]) -> None:
        counters = self.counters
        for due, run in entries:
            self._count_live(due, run)
            level = mark_level(run.mark)
            key = keys.level_part(level) + due
            self._writes.put(Family.VISIBILITY_INDEX, key, encode_run(run))
            counters.ready += run.count
            ready, low = counters.levels.get(level, (0, due))
            counters.levels[level] = (ready + run.count, min(low, due))

    def _put_delayed(self, entries: Sequence[Entry]) -> None:
        counters = self.counters
        for due, run in entries:
            self._count_live(due, run)
            self._writes.put(Family.DELAYED, due, encode_run(run))
            counters.delayed += run.count
            counters.delayed_due_ms = min(counters.delayed_due_ms, keys.split_due_part(due)[0])


def _claimed(run: Run, block: StoredBlock) -> int:
    """The bits of the items of a block that a run has; its last id counts, not where it says."""
    position = block.position_of(run.last)
    if position is None:
        return 0
    count = min(run.count, position + 1)
    return bits_of(position + 1 - count, count) & block.present


def _is_sound(run: Run, block: StoredBlock) -> bool:
    """Whether the run is one of the block; of one that is damaged the number may be too high."""
    stop = run.at + run.count
    return run.count > 0 and stop <= block.span and run == block.run(run.at, stop, run.mark)


def _mark(old: MarkFields, times: int, block: StoredBlock) -> Mark:
    """The mark of items that failed so often; of more times than are kept, as the mark has it."""
    plain = decode_mark(new_mark(old.batch, 0, has_details=block.has_details))
    return encode_mark(
        plain._replace(
            attempts=max(times, old.attempts) if times == ATTEMPTS_CEILING else times,
            group_max=old.group_max,
            priority=min(old.priority, PRIORITY_MAX),
        )
    )
