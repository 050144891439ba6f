"""Settle: complete some items of a queue and fail others, all of them or none.

An item may leave its lease only once in a transaction, because a lease is read as it was last
written. So all of them are taken at once, and then each has its outcome.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from queueber.db.records.cutting import pick
from queueber.db.records.runs import Run
from queueber.engine.queue.complete import complete_runs
from queueber.engine.queue.fail import Told, fail_runs
from queueber.engine.queue.queue_state import QueueTx
from queueber.errors import FailedPrecondition
from queueber.model import FailOutcome


@dataclass(slots=True)
class Outcomes:
    """What happens to items of one queue. Every sequence of a kind has one for each item."""

    completed: Sequence[bytes] = ()
    completed_leases: Sequence[bytes] = ()
    results: Sequence[bytes] = ()
    failed: Sequence[bytes] = ()
    failed_leases: Sequence[bytes] = ()
    errors: Sequence[str] = ()
    delays_ms: Sequence[int | None] = ()


def settle(tx: QueueTx, outcomes: Outcomes) -> list[FailOutcome]:
    """What became of each item that failed. Refused if a lease does not hold one of the items."""
    ids = [*outcomes.completed, *outcomes.failed]
    leases = [*outcomes.completed_leases, *outcomes.failed_leases]
    if not ids:
        return []
    taken = tx.queue.leases.take(tx, ids, leases)
    if not all(taken.held):
        lost = ids[taken.held.index(False)]
        raise FailedPrecondition(
            f"item {lost.hex()} of queue {tx.queue.name!r} is not in the lease that was named, or "
            "is named twice; nothing was done"
        )
    completed, failed = _split(tx, taken.runs, set(outcomes.completed))
    if completed:
        complete_runs(tx, completed, dict(zip(outcomes.completed, outcomes.results, strict=True)))
    told: list[Told] = list(zip(outcomes.failed, outcomes.errors, outcomes.delays_ms, strict=True))
    return fail_runs(tx, failed, told)


def _split(tx: QueueTx, runs: Sequence[Run], wanted: set[bytes]) -> tuple[list[Run], list[Run]]:
    """The items that are wanted, and the others."""
    blocks = tx.queue.blocks.reader()
    chosen: list[Run] = []
    others: list[Run] = []
    for run in runs:
        positions = [at for at, item_id in enumerate(run.ids) if item_id in wanted]
        picked, left = pick(run, positions, blocks.sizes(run))
        chosen += picked
        others += left
    return chosen, others
