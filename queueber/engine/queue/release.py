"""Release: the holder gives items back at once. No attempt is counted, but their lease is."""

from collections.abc import Sequence

from queueber.db.records.cutting import join_entries
from queueber.db.records.keys import due_part
from queueber.db.records.runs import Run, count_items, entry_at, uncharged_again
from queueber.engine.caps.key_changes import free_slots
from queueber.engine.queue.changes import Change, Moved
from queueber.engine.queue.lifecycle import State
from queueber.engine.queue.queue_state import QueueTx


def release(tx: QueueTx, ids: Sequence[bytes], leases: Sequence[bytes]) -> list[bool]:
    """For each id, whether its lease held it and it is now ready; `leases` has one for each."""
    taken = tx.queue.leases.take(tx, ids, leases)
    _give_back(tx, taken.runs)
    return taken.held


def release_lease(tx: QueueTx, lease_id: bytes) -> int:
    """Give back all items that a lease holds; returns how many."""
    ((expires_at_ms, runs),) = tx.queue.leases.read([lease_id])
    if runs:
        tx.queue.leases.end(tx, [(due_part(expires_at_ms, lease_id), runs)])
        _give_back(tx, free_slots(tx, runs))
    return count_items(runs)


def _give_back(tx: QueueTx, runs: Sequence[Run]) -> None:
    """Make items ready that were taken out of their leases."""
    if runs:
        if tx.queue.changes is not None:
            moves = [Moved(Change.RELEASED, run, State.LEASED, State.READY) for run in runs]
            tx.queue.changes.moved(tx, moves)
        given_back = [run._replace(mark=uncharged_again(run.mark)) for run in runs]
        tx.queue.ready.put(tx, join_entries([entry_at(tx.now_ms, run) for run in given_back]))
        tx.counters.released_total += count_items(runs)
