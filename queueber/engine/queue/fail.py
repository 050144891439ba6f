"""Fail: the holder says that the work on an item failed. It counts as an attempt."""

from collections.abc import Sequence
from typing import cast

from queueber.engine.queue.attempts import Failure, charge
from queueber.engine.queue.lifecycle import DeathReason
from queueber.engine.queue.queue_state import QueueTx
from queueber.ids import ItemId
from queueber.model import FailOutcome


def fail(
    tx: QueueTx,
    ids: Sequence[bytes],
    leases: Sequence[bytes],
    errors: Sequence[str],
    delays_ms: Sequence[int | None],
) -> list[FailOutcome]:
    """What became of each; every sequence has one for each id. A delay of None: the backoff."""
    marks = tx.queue.leases.take(tx, ids, leases)
    item_ids = cast("Sequence[ItemId]", ids)
    failures = [
        Failure(item_id, mark, error, delay_ms, DeathReason.FAILED)
        for item_id, mark, error, delay_ms in zip(item_ids, marks, errors, delays_ms, strict=True)
        if mark is not None
    ]
    if not failures:
        return [FailOutcome.REFUSED] * len(ids)
    comes_back = iter(charge(tx, failures))
    return [
        FailOutcome.REFUSED
        if mark is None
        else (FailOutcome.RETRIED if next(comes_back) else FailOutcome.DIED)
        for mark in marks
    ]
