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
from queueber.db.records.attempts import NO_HISTORY, decode_attempts
from queueber.db.records.blocks import bits_of
from queueber.db.records.cutting import join_entries
from queueber.db.records.dead_letters import encode_dead
from queueber.db.records.item_options import StoredOptions
from queueber.db.records.queues import Counters
from queueber.db.records.runs import (
    Entry,
    Mark,
    MarkFields,
    Run,
    decode_mark,
    encode_mark,
    encode_run,
    entry_at,
    mark_batch,
    mark_expires,
    mark_group_max,
    mark_level,
    new_mark,
)
from queueber.engine.integrity.check_items import COUNTED
from queueber.engine.integrity.queue_entries import InStep, QueueEntries, QueueWrites, readable
from queueber.engine.integrity.rebuild_blocks import BlocksRebuild
from queueber.engine.integrity.rebuild_options import OptionsRebuild
from queueber.engine.integrity.states import NO_ITEMS, STATES, LiveItems, StateRun, read_states
from queueber.engine.integrity.stored_blocks import StoredBlock, stretches
from queueber.ids import ItemId, made_at_ms
from queueber.limits import ATTEMPTS_CEILING, PRIORITY_DEFAULT, PRIORITY_MAX

_REBUILT = (
    *STATES, Family.PLACES, Family.LEASE_EXPIRY, Family.HOLDERS, Family.CAP_KEYS, Family.PARKED,
    Family.CAP_DUE, Family.ITEM_EXPIRY,
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
    _options: OptionsRebuild = field(init=False)

    def run(self) -> None:
        """Write every run again, and set the counts in the counters."""
        counters = self.counters
        for name in COUNTED:
            setattr(counters, name, 0)
        counters.levels = {}
        # Nothing is parked any more, and the buckets of cap keys are full.
        counters.caps_to_review = counters.cap_dues = 0
        counters.cap_due_ms = keys.NEVER_MS
        counters.lease_due_ms = counters.delayed_due_ms = keys.NEVER_MS
        counters.expiry_due_ms = keys.NEVER_MS
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
        options = OptionsRebuild(self.entries, self._writes, self.counters, self.lost)
        self._options = options
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
            self._write_runs(block, left, sound + damaged, attempts, options.fit(block, left))
        if count := sum(1 for _ in runs.rest()):
            self._lose_entries(count)
        for item_id, _ in histories.rest():
            self._writes.delete(Family.ATTEMPTS, item_id)
        options.drop_rest()

    def _lose_entries(self, count: int) -> None:
        self.lost["entries of items that cannot be read, or are gone"] += count

    def _fit_histories(
        self, block: StoredBlock, left: int, histories: Sequence[tuple[bytes, bytes]]
    ) -> dict[int, int]:
        """How often items of the block failed, by position; drop histories of no use."""
        attempts = {}
        for item_id, value in histories:
            position = block.position_of(item_id)
            times = len((readable(decode_attempts, value) or NO_HISTORY).times_ms)
            if position is not None and left >> position & 1 and 0 < times <= ATTEMPTS_CEILING:
                attempts[position] = times
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
        options: Mapping[int, StoredOptions],
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
            runs = self._runs(
                block,
                bits,
                state.run.mark,
                attempts,
                options,
                may_expire=state.due is not None and mark_expires(state.run.mark),
            )
            for run in runs:
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
            runs = self._runs(block, left, mark, attempts, options)
            ready += [entry_at(made_at_ms(run.last), run) for run in runs]
        self._put_ready(join_entries(ready))
        self._put_delayed(join_entries(delayed))

    def _runs(
        self,
        block: StoredBlock,
        bits: int,
        mark: bytes,
        attempts: Mapping[int, int],
        options: Mapping[int, StoredOptions],
        *,
        may_expire: bool = False,
    ) -> Iterator[Run]:
        """Items that were one run: again one, unless some are gone, have failed more often, or
        differ in whether their options can be read."""
        old = decode_mark(mark)
        if old.batch and old.batch not in self.batches and bits:
            text = "items of a batch that cannot be read: they belong to none"
            self.lost[text] += bits.bit_count()
            old = old._replace(batch=0)
        for start, stop in stretches(bits):
            if not attempts and not options:
                yield block.run(start, stop, _mark(old, 0, block))
                continue

            def own(at: int) -> tuple[int, bool, bool]:
                found = options.get(at)
                expires = may_expire and found is not None and found.expires_at_ms > 0
                return attempts.get(at, 0), found is not None, expires

            for (times, has_options, expires), group in groupby(range(start, stop), own):
                positions = list(group)
                new = _mark(old, times, block, has_options=has_options, expires=expires)
                yield block.run(positions[0], positions[-1] + 1, new)

    def _count_live(self, due: bytes, run: Run) -> None:
        """What holds for ready and delayed runs."""
        if number := mark_batch(run.mark):
            self.live[number] = self.live.get(number, NO_ITEMS).plus(run)
        self.counters.quarantined += run.count if mark_group_max(run.mark) else 0
        if mark_expires(run.mark):
            self._options.put_expiry(run)
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


def _mark(
    old: MarkFields,
    times: int,
    block: StoredBlock,
    *,
    has_options: bool = False,
    expires: bool = False,
) -> Mark:
    """The mark of items that failed so often; of more times than are kept, as the mark has it."""
    plain = decode_mark(
        new_mark(
            old.batch,
            0,
            has_details=block.has_details,
            has_options=has_options,
            expires=expires,
        )
    )
    return encode_mark(
        plain._replace(
            attempts=max(times, old.attempts) if times == ATTEMPTS_CEILING else times,
            group_max=old.group_max,
            uncharged=old.uncharged,
            priority=min(old.priority, PRIORITY_MAX),
        )
    )
