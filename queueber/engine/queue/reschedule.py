"""Reschedule: items that are ready or delayed become ready at another time, or now.

An item that waits to be retried keeps its attempts and is retried then. Whatever else it is stays
as it was: nothing here is an attempt, or a new item.
"""

from collections.abc import Sequence

from queueber.db.records.cutting import join_entries
from queueber.db.records.keys import AWAITING_MS, split_due_part
from queueber.db.records.runs import Entry, Run, entry_at, mark_expires, without_slot
from queueber.engine.queue.cancel import Places, find_places, take_places
from queueber.engine.queue.changes import Change, Moved
from queueber.engine.queue.lifecycle import State
from queueber.engine.queue.options import options_of
from queueber.engine.queue.places import put_delayed
from queueber.engine.queue.queue_state import QueueTx
from queueber.ids import ItemId


def reschedule(tx: QueueTx, ids: Sequence[bytes], delay_ms: int) -> list[bool]:
    """For each id, whether the item will be ready after that delay, or (0) is ready now.

    An item that is ready already and shall be so now keeps its place. One that waits for others, or
    would expire before it is ready, stays as it was.
    """
    queue, at_ms = tx.queue, tx.now_ms + delay_ms
    moving: Places = {}
    rescheduled: set[ItemId] = set()
    for place, positions in find_places(tx, ids).items():
        level, (due, run) = place
        if split_due_part(due)[0] == AWAITING_MS:
            continue
        chosen = _in_time(tx, run, positions, at_ms)
        rescheduled.update([run.ids[position] for position in chosen])
        if chosen and (level is None or delay_ms):
            moving[place] = chosen
    if moving:
        ready, delayed = take_places(tx, moving)
        now = State.DELAYED if delay_ms else State.READY
        if queue.changes is not None:
            moves = [
                Moved(Change.RESCHEDULED, run, was, now, visible_at_ms=at_ms if delay_ms else 0)
                for was, runs in ((State.READY, ready), (State.DELAYED, delayed))
                for run in runs
            ]
            queue.changes.moved(tx, sorted(moves, key=lambda move: move.run.last))
        # Ready items may be parked, or hold slots: that ended when they left the index.
        entries = [_entry(at_ms, run) for run in (*ready, *delayed)]
        if delay_ms:
            put_delayed(tx, join_entries(entries))
        else:
            queue.ready.put(tx, join_entries(entries))
    return [item_id in rescheduled for item_id in ids]


def _in_time(tx: QueueTx, run: Run, positions: list[int], at_ms: int) -> list[int]:
    """The positions of those that do not expire by then."""
    if not mark_expires(run.mark):
        return positions
    ids, options = run.ids, options_of(tx, [run])
    return [at for at in positions if options[ids[at]].expires_at_ms > at_ms]


def _entry(at_ms: int, run: Run) -> Entry:
    return entry_at(at_ms, run._replace(mark=without_slot(run.mark)))
