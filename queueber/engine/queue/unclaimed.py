"""Unclaimed: items that nobody leases in time become dead letters.

An item may expire at a time of its own. The first lease ends that: whoever has leased it has
claimed it, whatever becomes of the lease. A poll that meets an item whose time has passed does not
give it, even if the sweeper has not come by.
"""

from collections.abc import Sequence
from typing import Any

from queueber.db.families import Family
from queueber.db.records.cutting import pick
from queueber.db.records.item_options import StoredOptions
from queueber.db.records.keys import PREFIX_BYTES, split_due_part
from queueber.db.records.runs import Run, as_dead, count_items, mark_expires, without_expiry
from queueber.engine.caps.key_changes import leave_ready
from queueber.engine.kernel.due_scan import Done, read_due
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.queue.cancel import take_waiting
from queueber.engine.queue.changes import Change, Moved
from queueber.engine.queue.isolation import end_quarantine
from queueber.engine.queue.lifecycle import DeathReason, State
from queueber.engine.queue.options import end_expiry, options_of
from queueber.engine.records.batches import Side
from queueber.limits import SWEEP_SLICE_ITEMS


class Claims:
    """What the polls of one call take of items that expire."""

    __slots__ = ("_items", "_late", "_options", "_tx")

    def __init__(self, tx: Transaction[Any]) -> None:
        self._tx = tx
        self._late: list[Run] = []
        self._items = 0
        self._options: dict[bytes, StoredOptions] = {}

    def __bool__(self) -> bool:
        """Whether some were too late."""
        return bool(self._late)

    @property
    def is_full(self) -> bool:
        """Whether a transaction takes no more of those that were too late."""
        return self._items >= SWEEP_SLICE_ITEMS

    def split(self, due: bytes, run: Run, blocks: Any) -> tuple[Sequence[Run], Sequence[Run]]:
        """The items that may be leased, and those that are too late; `due` is that of the entry."""
        if not mark_expires(run.mark):
            return [run], ()
        tx = self._tx
        options = options_of(tx, [run])
        self._options.update(options)
        in_time = [at for at, i in enumerate(run.ids) if options[i].expires_at_ms > tx.now_ms]
        if len(in_time) == run.count:
            return [run], ()
        kept, late = pick(run, in_time, blocks.sizes(run))
        self._end(late)
        leave_ready(tx, due, late)
        self._late += late
        self._items += count_items(late)
        return kept, late

    def claim(self, runs: Sequence[Run]) -> Sequence[Run]:
        """Items are leased: the same, which do not expire any more."""
        expiring = [run for run in runs if mark_expires(run.mark)]
        if not expiring:
            return runs
        self._end(expiring)
        return [
            run._replace(mark=without_expiry(run.mark)) if mark_expires(run.mark) else run
            for run in runs
        ]

    def _end(self, runs: Sequence[Run]) -> None:
        end_expiry(self._tx, [(i, self._options[i]) for run in runs for i in run.ids])

    def take_in(self) -> None:
        """Those that were too late have left the index of ready items by now."""
        if self._late:
            _die(self._tx, self._late, State.READY)


def expire_unclaimed(tx: Transaction[Any], items_max: int) -> Done:
    """Items whose time has come, and that nobody has leased, become dead letters."""
    counters = tx.counters
    due, counters.expiry_due_ms, look_again_ms = read_due(
        tx,
        Family.ITEM_EXPIRY,
        low_ms=counters.expiry_due_ms,
        limit=items_max,
        total=counters.expiring,
    )
    ids = [split_due_part(key[PREFIX_BYTES:])[1] for key, _ in due]
    if ids:
        tx.batch.delete_many(Family.ITEM_EXPIRY, [key for key, _ in due])
        counters.expiring -= len(ids)
        ready, delayed = take_waiting(tx, ids)
        _die(tx, ready, State.READY)
        _die(tx, delayed, State.DELAYED)
    return Done(len(ids), look_again_ms)


def _die(tx: Transaction[Any], runs: Sequence[Run], was: State) -> None:
    """Items that were taken out of their index die."""
    if not runs:
        return
    queue, reason = tx.queue, DeathReason.UNCLAIMED
    letters = [run._replace(mark=as_dead(run.mark)) for run in runs]
    if queue.changes is not None:
        moves = [
            Moved(Change.DEAD, run, was, State.DEAD, letter.mark, error=reason.text(0))
            for run, letter in zip(runs, letters, strict=True)
        ]
        queue.changes.moved(tx, moves)
    queue.dead_letters.put(tx, letters, reason.value)
    tx.counters.unclaimed_total += count_items(letters)
    end_quarantine(tx, letters)
    queue.batches.count_ended(tx, letters, Side.DEAD)
