"""Redrive: dead letters are ready again, as if they had just been added."""

from collections.abc import Sequence

from queueber.db.families import Family
from queueber.db.records.dead_letters import decode_dead
from queueber.db.records.keys import due_part
from queueber.db.records.marks import decode_mark, encode_mark
from queueber.engine.kernel.state import Engine, QueueState
from queueber.engine.kernel.transaction import Change
from queueber.engine.queue.dead_letters import drop_dead, first_dead
from queueber.engine.records.batches import batch_name, count_revived


def redrive(engine: Engine, queue: QueueState, ids: Sequence[bytes], now_ms: int) -> int:
    """Revive those of the ids that are dead letters; returns how many."""
    distinct = sorted(set(ids))
    found = engine.store.get_many(Family.DEAD, [queue.prefix + item_id for item_id in distinct])
    return _revive(
        engine,
        queue,
        [
            (item_id, decode_dead(value)[2])
            for item_id, value in zip(distinct, found, strict=True)
            if value is not None
        ],
        now_ms,
    )


def redrive_first(engine: Engine, queue: QueueState, limit: int, now_ms: int) -> tuple[int, bool]:
    """Revive a slice of the dead letters; returns how many, and whether there are more."""
    letters = first_dead(engine, queue, limit)
    count = _revive(engine, queue, letters, now_ms)
    if letters:
        queue.dead_low = letters[-1][0]
    return count, queue.counters.dead > 0


def _revive(
    engine: Engine, queue: QueueState, letters: list[tuple[bytes, bytes]], now_ms: int
) -> int:
    """Letters are given as id and mark."""
    if not letters:
        return 0
    change = Change(engine, queue)
    drop_dead(queue, change, letters)
    change.batch.delete_many(Family.ATTEMPTS, [queue.prefix + i for i, _ in letters])
    fresh = [(i, _as_new(engine, queue, mark)) for i, mark in letters]
    count_revived(change, fresh, now_ms)
    change.make_ready(sorted((due_part(now_ms, i), mark) for i, mark in fresh))
    change.counters.redriven_total += len(letters)
    change.commit()
    return len(letters)


def _as_new(engine: Engine, queue: QueueState, mark: bytes) -> bytes:
    """No attempts, no limit to its group, and no batch if that is forgotten meanwhile."""
    fresh = decode_mark(mark)._replace(attempts=0, group_max=0)
    if not batch_name(engine, queue, fresh.batch):
        fresh = fresh._replace(batch=0)
    return encode_mark(fresh)
