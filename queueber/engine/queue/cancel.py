"""Cancel: delete an item, whatever state it is in. Its batch counts it as dead.

The holder of a leased item learns of it when the server refuses the outcome of its work.
"""

from collections.abc import Sequence
from functools import partial

from queueber.db.families import Family
from queueber.db.records.runs import Entry, Run, at_time_of, by_entry, pick
from queueber.engine.caps.cap_keys import leave_ready
from queueber.engine.queue.changes import Change, Moved, gone
from queueber.engine.queue.lifecycle import State
from queueber.engine.queue.places import find_entry, find_times, put_delayed, take_delayed
from queueber.engine.queue.queue_state import QueueTx
from queueber.engine.queue.remove import finish
from queueber.engine.records.batches import Side
from queueber.ids import ItemId


def cancel(tx: QueueTx, ids: Sequence[bytes]) -> list[bool]:
    """For each id, whether there was such an item, and it is now gone."""
    queue = tx.queue
    letters = queue.dead_letters.take(tx, ids)
    ready, delayed = take_waiting(tx, ids)
    cancelled = {item_id for run in (*letters, *ready, *delayed) for item_id in run.ids}
    others = [item_id for item_id in dict.fromkeys(ids) if item_id not in cancelled]
    leased = queue.leases.take_from_any(tx, queue.leases.find(others))
    cancelled.update([item_id for run in leased for item_id in run.ids])
    if queue.changes is not None:
        moves = [
            *gone(Change.CANCELLED, letters, State.DEAD),
            *gone(Change.CANCELLED, ready, State.READY),
            *gone(Change.CANCELLED, delayed, State.DELAYED),
            *gone(Change.CANCELLED, leased, State.LEASED),
        ]
        queue.changes.moved(tx, sorted(moves, key=_last_id))
    if letters:
        finish(tx, letters, None)
    if living := ready + delayed + leased:
        finish(tx, living, Side.DEAD)
    tx.counters.cancelled_total += len(cancelled)
    return [item_id in cancelled for item_id in ids]


def take_waiting(tx: QueueTx, ids: Sequence[bytes]) -> tuple[list[Run], list[Run]]:
    """Take those of the items that are ready, and those that are delayed, out of their index."""
    ready: list[Run] = []
    delayed: list[Run] = []
    blocks = tx.queue.blocks.reader()
    for (level, entry), positions in by_entry(ids, partial(_find, tx), _run).items():
        due, run = entry
        picked, left = pick(run, positions, blocks.sizes(run))
        if level is not None:
            ready += picked
            tx.queue.ready.take_some(tx, level, entry, left)
            leave_ready(tx, due, picked)
            continue
        delayed += picked
        take_delayed(tx, [entry])
        if left:
            put_delayed(tx, [at_time_of(due, each) for each in left])
    return ready, delayed


def _last_id(move: Moved) -> ItemId:
    return move.run.last


_Place = tuple[int | None, Entry]
"""The level of a ready run, None if it is delayed; and its entry."""


def _run(place: _Place) -> Run:
    return place[1][1]


def _find(tx: QueueTx, item_id: bytes) -> _Place | None:
    for at_ms in find_times(tx, item_id):
        if tx.counters.delayed:
            entry = find_entry(tx.store, Family.DELAYED, tx.prefix, at_ms, item_id)
            if entry is not None:
                return None, entry
        ready = tx.queue.ready.find(tx.counters, at_ms, item_id)
        if ready is not None:
            return ready
    return None
