"""Redrive: dead letters become ready again, and their attempts count from zero."""

from collections.abc import Sequence

from queueber.db.families import Family
from queueber.db.records.keys import HeldItem, Mark, decode_mark, due_part, encode_mark
from queueber.engine.queue.queue_state import QueueTx


def redrive(tx: QueueTx, ids: Sequence[bytes]) -> int:
    """Revive those of the ids that are dead letters; returns how many."""
    letters = tx.queue.dead_letters.get(sorted(set(ids)))
    _revive(tx, letters, are_first=False)
    return len(letters)


def redrive_first(tx: QueueTx, limit: int) -> tuple[int, bool]:
    """Revive a slice of the dead letters; returns how many, and whether there are more."""
    letters = tx.queue.dead_letters.first(limit)
    _revive(tx, letters, are_first=True)
    return len(letters), tx.counters.dead > 0


def _revive(tx: QueueTx, letters: list[HeldItem], *, are_first: bool) -> None:
    if not letters:
        return
    queue = tx.queue
    queue.dead_letters.drop(tx, letters, are_first=are_first)
    tx.batch.delete_many(Family.ATTEMPTS, [tx.prefix + i for i, _ in letters])
    revived = [(i, _as_new(tx, mark)) for i, mark in letters]
    queue.batches.count_revived(tx, revived)
    queue.ready.put(tx, sorted((due_part(tx.now_ms, i), mark) for i, mark in revived))
    tx.counters.redriven_total += len(letters)


def _as_new(tx: QueueTx, mark: Mark) -> Mark:
    """The mark without attempts and quarantine, and without a batch that is forgotten by now."""
    new = decode_mark(mark)._replace(attempts=0, group_max=0)
    if not tx.queue.batches.names.name(new.batch):
        new = new._replace(batch=0)
    return encode_mark(new)
