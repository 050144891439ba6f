"""Operations of the engine, each in a transaction of its own that is committed at once.

Tests of one operation call these: engine and queue first, the time last.
"""

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, TypeVar

from queueber.db.records.keys import NEVER_MS
from queueber.db.records.loads import LoadedRecord, LoadRecord, load_digest
from queueber.db.records.log import LogHead
from queueber.db.store.contract import Snapshot, Store
from queueber.engine import log as log_module
from queueber.engine.kernel.due_scan import Done
from queueber.engine.kernel.transaction import Kernel, Steps, Transaction
from queueber.engine.loads import commit, staging
from queueber.engine.log import Log
from queueber.engine.open import Engine
from queueber.engine.queue import (
    add as add_module,
)
from queueber.engine.queue import (
    cancel as cancel_module,
)
from queueber.engine.queue import (
    complete as complete_module,
)
from queueber.engine.queue import (
    expire as expire_module,
)
from queueber.engine.queue import (
    extend as extend_module,
)
from queueber.engine.queue import (
    fail as fail_module,
)
from queueber.engine.queue import (
    find as find_module,
)
from queueber.engine.queue import (
    isolation,
    queue_state,
    queues,
    results,
)
from queueber.engine.queue import (
    pause as pause_module,
)
from queueber.engine.queue import (
    peek as peek_module,
)
from queueber.engine.queue import (
    poll as poll_module,
)
from queueber.engine.queue import (
    promote as promote_module,
)
from queueber.engine.queue import (
    purge as purge_module,
)
from queueber.engine.queue import (
    redrive as redrive_module,
)
from queueber.engine.queue import (
    release as release_module,
)
from queueber.engine.queue import (
    remove as remove_module,
)
from queueber.engine.queue import (
    reschedule as reschedule_module,
)
from queueber.engine.queue import (
    sweep as sweep_module,
)
from queueber.engine.queue.isolation import HeldTogether
from queueber.engine.queue.queue_state import QueueState, QueueTx, View
from queueber.ids import IdSource
from queueber.limits import SWEEP_SLICE_ITEMS
from queueber.model import (
    Added,
    FailOutcome,
    Finding,
    ItemInfo,
    ItemState,
    LoadRef,
    NewItems,
    On,
    Part,
    PartRef,
    Polled,
    QueueSettings,
    Receipt,
    Results,
    Source,
    Stats,
    Sweep,
    TopicSettings,
)

T = TypeVar("T")


def run(
    engine: Engine, queue: QueueState, now_ms: int, operation: Callable[..., T], *arguments: Any
) -> T:
    tx = Transaction(engine.kernel, now_ms, queue)
    answer = operation(tx, *arguments)
    tx.commit()
    return answer


def run_alone(
    store: Store, now_ms: int, operation: Callable[..., T], *arguments: Any, **named: Any
) -> T:
    """In a transaction of no queue."""
    tx = Transaction(Kernel(store, IdSource(Random(0))), now_ms, None)
    answer = operation(tx, *arguments, **named)
    tx.commit()
    return answer


def _run_registry(engine: Engine, now_ms: int, operation: Callable[..., T], *arguments: Any) -> T:
    tx = Transaction(engine.kernel, now_ms, None)
    answer = operation(tx, *arguments)
    tx.commit()
    return answer


# --- items ----------------------------------------------------------------------------------------


def add(engine: Engine, queue: QueueState, items: NewItems, now_ms: int) -> Added:
    operation = staging.add_rows if items.origin else add_module.add
    arguments = (engine.loads.of(queue), items) if items.origin else (items,)
    return run(engine, queue, now_ms, operation, *arguments)


def poll(
    engine: Engine,
    queue: QueueState,
    counts: Sequence[int],
    *,
    lease_ms: int,
    answer_bytes_max: int,
    now_ms: int,
    holder: HeldTogether | None = None,
) -> list[Polled]:
    def operation(tx: QueueTx) -> list[Polled]:
        return poll_module.poll(
            tx, counts, lease_ms=lease_ms, answer_bytes_max=answer_bytes_max, holder=holder
        )

    return run(engine, queue, now_ms, operation)


def extend(
    engine: Engine,
    queue: QueueState,
    leases: Sequence[bytes],
    leases_ms: Sequence[int],
    now_ms: int,
) -> list[bool]:
    return run(engine, queue, now_ms, extend_module.extend, leases, leases_ms)


def remove(
    engine: Engine, queue: QueueState, ids: Sequence[bytes], leases: Sequence[bytes], now_ms: int
) -> list[bool]:
    return run(engine, queue, now_ms, remove_module.remove, ids, leases)


def remove_whole(
    engine: Engine, queue: QueueState, leases: Sequence[bytes], counts: Sequence[int], now_ms: int
) -> list[bool]:
    return run(engine, queue, now_ms, remove_module.remove_whole, leases, counts)


def complete_whole(
    engine: Engine,
    queue: QueueState,
    leases: Sequence[bytes],
    counts: Sequence[int],
    given: Sequence[bytes],
    now_ms: int,
) -> list[bool]:
    return run(engine, queue, now_ms, complete_module.complete_whole, leases, counts, given)


def complete(
    engine: Engine,
    queue: QueueState,
    ids: Sequence[bytes],
    leases: Sequence[bytes],
    given: Sequence[bytes],
    now_ms: int,
) -> list[bool]:
    return run(engine, queue, now_ms, complete_module.complete, ids, leases, given)


def fail(
    engine: Engine,
    queue: QueueState,
    ids: Sequence[bytes],
    leases: Sequence[bytes],
    errors: Sequence[str],
    delays_ms: Sequence[int | None],
    now_ms: int,
) -> list[FailOutcome]:
    return run(engine, queue, now_ms, fail_module.fail, ids, leases, errors, delays_ms)


def release(
    engine: Engine, queue: QueueState, ids: Sequence[bytes], leases: Sequence[bytes], now_ms: int
) -> list[bool]:
    return run(engine, queue, now_ms, release_module.release, ids, leases)


def release_lease(engine: Engine, queue: QueueState, lease_id: bytes, now_ms: int) -> int:
    return run(engine, queue, now_ms, release_module.release_lease, lease_id)


def cancel(engine: Engine, queue: QueueState, ids: Sequence[bytes], now_ms: int) -> list[bool]:
    return run(engine, queue, now_ms, cancel_module.cancel, ids)


def cancel_key(engine: Engine, queue: QueueState, key: str, now_ms: int) -> bool:
    return run(engine, queue, now_ms, cancel_module.cancel_key, key)


def cancel_batch(
    engine: Engine, queue: QueueState, batch: str, state: ItemState, after: bytes, limit: int,
    now_ms: int,
) -> tuple[int, bytes]:  # fmt: skip
    given = batch, state, after, limit
    return run(engine, queue, now_ms, cancel_module.cancel_batch, *given)


def reschedule(
    engine: Engine, queue: QueueState, ids: Sequence[bytes], delay_ms: int, now_ms: int
) -> list[bool]:
    return run(engine, queue, now_ms, reschedule_module.reschedule, ids, delay_ms)


def purge(
    engine: Engine, queue: QueueState, state: ItemState, limit: int, now_ms: int
) -> tuple[int, bool]:
    return run(engine, queue, now_ms, purge_module.purge, state, limit)


def forget_batch(engine: Engine, queue: QueueState, name: str, now_ms: int) -> bool:
    return run(engine, queue, now_ms, queue.batches.forget, name)


def forget_batches(
    engine: Engine, queue: QueueState, unchanged_for_ms: int, after: int, limit: int, now_ms: int
) -> tuple[int, int]:
    asked = (unchanged_for_ms, after, limit)
    return run(engine, queue, now_ms, queue.batches.forget_some, *asked)


def redrive(engine: Engine, queue: QueueState, ids: Sequence[bytes], now_ms: int) -> int:
    return run(engine, queue, now_ms, redrive_module.redrive, ids)


def redrive_first(engine: Engine, queue: QueueState, limit: int, now_ms: int) -> tuple[int, bool]:
    return run(engine, queue, now_ms, redrive_module.redrive_first, limit)


# --- time -----------------------------------------------------------------------------------------


def _run_due(
    engine: Engine,
    queue: QueueState,
    now_ms: int,
    due_ms: int,
    duty: Callable[[QueueTx, int], Done],
    items_max: int,
) -> tuple[int, int]:
    """How many moved, and when to look again."""
    if due_ms > now_ms:
        return 0, due_ms
    done = run(engine, queue, now_ms, duty, items_max)
    assert done.look_again_ms is not None
    return done.moved, done.look_again_ms


def expire(engine: Engine, queue: QueueState, now_ms: int, items_max: int) -> tuple[int, int]:
    due_ms = queue.counters.lease_due_ms
    return _run_due(engine, queue, now_ms, due_ms, expire_module.expire, items_max)


def expire_leases(
    engine: Engine,
    queue: QueueState,
    lease_ids: Sequence[bytes],
    now_ms: int,
    *,
    together: int,
    items_max: int,
) -> tuple[int, list[bytes]]:
    def operation(tx: QueueTx) -> tuple[int, list[bytes]]:
        return expire_module.expire_leases(tx, lease_ids, together=together, items_max=items_max)

    return run(engine, queue, now_ms, operation)


def promote(engine: Engine, queue: QueueState, now_ms: int, items_max: int) -> tuple[int, int]:
    due_ms = queue.counters.delayed_due_ms
    return _run_due(engine, queue, now_ms, due_ms, promote_module.promote, items_max)


def forget(engine: Engine, queue: QueueState, now_ms: int, entries_max: int) -> tuple[int, int]:
    due_ms = queue.retention.due_ms(queue.counters.forget_due_ms)
    return _run_due(engine, queue, now_ms, due_ms, queue.retention.forget, entries_max)


def pause(engine: Engine, queue: QueueState, until_ms: int) -> None:
    """As if it were called a millisecond before."""
    run(engine, queue, until_ms - 1, pause_module.pause, 0 if until_ms == NEVER_MS else 1)


def resume(engine: Engine, queue: QueueState) -> None:
    run(engine, queue, 0, pause_module.resume)


def resume_if_due(engine: Engine, queue: QueueState, now_ms: int) -> bool:
    if (queue.paused_until_ms or NEVER_MS) > now_ms:
        return False
    run(engine, queue, now_ms, pause_module.resume_due, 1)
    return True


def sweep(engine: Engine, now_ms: int, items_max: int = SWEEP_SLICE_ITEMS) -> Sweep | None:
    return sweep_module.sweep(engine.kernel, engine.queues, now_ms, items_max)


def sweep_queue(
    engine: Engine, queue: QueueState, now_ms: int, items_max: int = SWEEP_SLICE_ITEMS
) -> Sweep:
    return sweep_module.sweep_queue(engine.kernel, queue, now_ms, items_max)


# --- queues ---------------------------------------------------------------------------------------


def create_queue(engine: Engine, name: str, settings: QueueSettings, now_ms: int) -> bool:
    return _run_registry(engine, now_ms, engine.queues.create, name, settings)


def configure_queue(engine: Engine, name: str, settings: QueueSettings, now_ms: int) -> None:
    run(engine, engine.queues.get(name), now_ms, queues.configure, settings)


def delete_queue(engine: Engine, name: str) -> bool:
    return _run_registry(engine, 0, engine.queues.delete, name)


def route_queue(engine: Engine, name: str, now_ms: int) -> None:
    """A topic gets what is deleted from the queue."""
    topic, _ = _run_registry(engine, now_ms, engine.topics.create, "events", TopicSettings())
    source = Source(name, On.DELETE)
    assert _run_registry(engine, now_ms, engine.routes.add, topic, source)


def reclaimed(engine: Engine, prefix: bytes) -> None:
    _run_registry(engine, 0, engine.queues.reclaimed, prefix)


def reclaim_slices(engine: Engine, prefix: bytes) -> Iterator[Callable[[], None]]:
    return queues.reclaim_slices(engine.store, prefix)


def queue_stats(engine: Engine, queue: QueueState, *, waiting_polls: int, now_ms: int) -> Stats:
    return queues.queue_stats(queue, waiting_polls=waiting_polls, now_ms=now_ms)


# --- looking --------------------------------------------------------------------------------------


def peek(
    engine: Engine, queue: QueueState, state: ItemState, after: bytes, limit: int, bytes_max: int
) -> tuple[list[ItemInfo], bytes]:
    return peek_module.peek(engine.store, queue, state, after, limit, bytes_max)


def find_item(engine: Engine, queue: QueueState, item_id: bytes, offset: int = 0) -> Finding:
    return find_module.find_item(engine.store, queue, item_id, offset)


def live_view(engine: Engine, queue: QueueState) -> View:
    return queue_state.live_view(engine.store, queue)


def take_view(engine: Engine, queue: QueueState) -> tuple[View, Snapshot]:
    return queue_state.take_view(engine.store, queue)


def read_results(
    engine: Engine, queue: QueueState, offset: int, limit: int, bytes_max: int
) -> Results:
    return results.results_of(live_view(engine, queue), offset, limit, bytes_max)


def receipt(engine: Engine, queue: QueueState, name: str) -> Receipt:
    return queue.batches.receipt(name)


def batch_name(engine: Engine, queue: QueueState, number: int) -> str:
    return queue.batches.names.name(number)


def held_by(engine: Engine, queue: QueueState, leases: list[bytes]) -> HeldTogether:
    return isolation.held_by(queue, leases)


# --- logs -----------------------------------------------------------------------------------------


def append(store: Store, log: Log, rows: Sequence[bytes], now_ms: int) -> LogHead:
    return run_alone(store, now_ms, log_module.append, log, rows)


def acknowledge(store: Store, log: Log, reader: str, offset: int) -> None:
    run_alone(store, 0, log_module.acknowledge, log, reader, offset)


def drop_reader(store: Store, log: Log, reader: str) -> bool:
    return run_alone(store, 0, log_module.drop_reader, log, reader)


def trim(store: Store, log: Log, now_ms: int, *, age_ms: int, bytes_max: int) -> int:
    return run_alone(store, now_ms, log_module.trim, log, _limits(log, age_ms, bytes_max))


def trim_due_ms(log: Log, *, now_ms: int, age_ms: int, bytes_max: int) -> int:
    return log_module.trim_due_ms(log, _limits(log, age_ms, bytes_max), now_ms)


def _limits(log: Log, age_ms: int, bytes_max: int) -> log_module.Limits:
    acknowledged = min(log.readers.values(), default=0)
    return log_module.Limits(age_ms, bytes_max, acknowledged=acknowledged)


# --- loads ----------------------------------------------------------------------------------------


def begin_load(
    engine: Engine,
    queue: QueueState,
    ref: LoadRef,
    *,
    batch: str,
    timeout_ms: int,
    token: bytes,
    now_ms: int,
) -> LoadRecord | LoadedRecord:
    def operation(tx: QueueTx) -> LoadRecord | LoadedRecord:
        return staging.begin_load(
            tx, engine.loads.of(queue), ref, batch=batch, timeout_ms=timeout_ms, token=token
        )

    return run(engine, queue, now_ms, operation)


def finish_part(
    engine: Engine, queue: QueueState, ref: LoadRef, part: Part, now_ms: int
) -> LoadRecord:
    return run(engine, queue, now_ms, staging.finish_part, engine.loads.of(queue), ref, part)


def abort_load(engine: Engine, queue: QueueState, ref: LoadRef, now_ms: int) -> bool:
    return run(engine, queue, now_ms, staging.abort_load, engine.loads.of(queue), ref)


def touch_load(engine: Engine, queue: QueueState, ref: LoadRef, now_ms: int) -> LoadRecord:
    return run(engine, queue, now_ms, staging.touch_load, engine.loads.of(queue), ref)


def commit_load(
    engine: Engine, queue: QueueState, ref: LoadRef, refs: Sequence[PartRef], now_ms: int
) -> Steps[LoadedRecord]:
    return commit.commit_load(engine.kernel, engine.loads.of(queue), ref, refs, now_ms)


def find_committed(engine: Engine, queue: QueueState, ref: LoadRef) -> LoadedRecord | None:
    return engine.loads.of(queue).committed(ref)


def loads_under_way(engine: Engine, queue: QueueState) -> dict[bytes, LoadRecord]:
    """By the digest of their names."""
    return {load_digest(load.record.ref.name): load.record for load in engine.loads.of(queue)}
