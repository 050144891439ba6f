"""Redrive: dead letters become ready again, and their attempts count from zero."""

from collections.abc import Sequence

from queueber.db.families import Family
from queueber.db.records.cutting import join_entries
from queueber.db.records.runs import Mark, Run, count_items, decode_mark, encode_mark, entry_at
from queueber.engine.queue.changes import Change, Moved
from queueber.engine.queue.lifecycle import State
from queueber.engine.queue.queue_state import QueueTx


def redrive(tx: QueueTx, ids: Sequence[bytes]) -> int:
    """Revive those of the ids that are dead letters; returns how many."""
    return _revive(tx, tx.queue.dead_letters.take(tx, ids))


def redrive_first(tx: QueueTx, limit: int) -> tuple[int, bool]:
    """Revive a slice of the dead letters; returns how many, and whether there are more."""
    revived = _revive(tx, tx.queue.dead_letters.take_first(tx, limit))
    return revived, tx.counters.dead > 0


def _revive(tx: QueueTx, letters: Sequence[Run]) -> int:
    if not letters:
        return 0
    queue = tx.queue
    count = count_items(letters)
    if queue.undelivered is not None:
        letters = queue.undelivered.delivered(tx, letters)
    histories = [tx.prefix + item_id for run in letters for item_id in run.ids]
    tx.batch.delete_many(Family.ATTEMPTS, histories)
    revived = [run._replace(mark=_as_new(tx, run.mark)) for run in letters]
    queue.batches.count_revived(tx, revived)
    if queue.changes is not None:
        queue.changes.moved(tx, _moves(letters, revived))
    queue.ready.put(tx, join_entries([entry_at(tx.now_ms, run) for run in revived]))
    tx.counters.redriven_total += count
    return count


def _moves(letters: Sequence[Run], revived: Sequence[Run]) -> list[Moved]:
    return [
        Moved(Change.REDRIVEN, letter, State.DEAD, State.READY, run.mark)
        for letter, run in zip(letters, revived, strict=True)
    ]


def _as_new(tx: QueueTx, mark: Mark) -> Mark:
    """The mark without attempts, leases and quarantine, and without a batch that is forgotten by
    now."""
    new = decode_mark(mark)._replace(attempts=0, uncharged=0, group_max=0)
    if not tx.queue.batches.names.name(new.batch):
        new = new._replace(batch=0)
    return encode_mark(new)
