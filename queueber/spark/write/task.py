"""Tasks that write: which partition they are, how they join their load and keep it alive."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from threading import Event, Thread
from uuid import uuid4

from pyspark import TaskContext

from queueber import Load, Queue
from queueber.errors import NotFound, QueueberError
from queueber.limits import DAY_MS, SECOND_MS
from queueber.model import LoadRef, PartRef
from queueber.spark.options import WriteOptions

_TOUCH_SECONDS_MAX = 30.0
"""The longest time between two heartbeats of a task."""

_FIRST_TASK_SECONDS = DAY_MS // SECOND_MS
"""How long Spark may take until the first task writes: the stages before it come first."""


def this_part() -> PartRef:
    """This attempt at a partition."""
    # A restarted driver may use the same load, and Spark numbers its attempts from 0 again.
    attempt = f"task {_context().taskAttemptId()} {uuid4()}"
    return PartRef(_context().partitionId(), attempt)


def this_micro_batch() -> LoadRef:
    """The load of the stream's micro-batch that this task writes."""
    query_id = _context().getLocalProperty("sql.streaming.queryId") or ""
    batch_id = int(_context().getLocalProperty("streaming.sql.batchId") or 0)
    return LoadRef(f"stream {query_id}", batch_id)


def _context() -> TaskContext:
    context = TaskContext.get()
    if context is None:
        raise RuntimeError("a write runs inside a Spark task; there is none here")
    return context


def begin(queue: Queue, ref: LoadRef, options: WriteOptions) -> Load:
    """Begin a load on the driver, perhaps long before the first task starts."""
    timeout = max(options.stage_timeout, _FIRST_TASK_SECONDS)
    return join(queue, ref, replace(options, stage_timeout=timeout))


def join(queue: Queue, ref: LoadRef, options: WriteOptions, *, must_exist: bool = False) -> Load:
    """Join the load; begin it if nobody has, unless it must exist."""
    return queue.load(
        ref.name,
        epoch=ref.epoch,
        batch=options.batch,
        timeout=options.stage_timeout,
        must_exist=must_exist,
    )


def find(queue: Queue, ref: LoadRef, options: WriteOptions) -> Load:
    """Join a load that was begun and has not ended, in one call.

    A task that starts after its write was given up must not begin the load again: nobody would end
    it.
    """
    try:
        load = join(queue, ref, options, must_exist=True)
    except NotFound:
        load = None
    if load is None or load.is_committed:
        raise NotFound(
            f"load: {ref.name!r} is not under way in queue {queue.name!r} any more; it was "
            "committed, aborted, or dropped because nobody called in time (option 'stage_timeout')"
        )
    return load


@contextmanager
def kept_alive(queue: Queue, ref: LoadRef, options: WriteOptions) -> Iterator[None]:
    """Send heartbeats while a task waits for rows, so that the server does not drop the load."""
    seconds = min(options.stage_timeout / 3, _TOUCH_SECONDS_MAX)
    is_over = Event()

    def touch() -> None:
        while not is_over.wait(seconds):
            # The next call of the task meets the same error, and raises it.
            with suppress(QueueberError):
                find(queue, ref, options)

    thread = Thread(target=touch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
