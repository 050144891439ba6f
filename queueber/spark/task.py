"""Tasks that write: who they are, how they find their load, and how they keep it."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Event, Thread
from uuid import uuid4

from pyspark import TaskContext

from queueber.client.load import Load
from queueber.client.queue import Queue
from queueber.errors import NotFound, QueueberError
from queueber.limits import DAY_MS, SECOND_MS
from queueber.model import LoadRef, PartRef
from queueber.spark.options import WriteOptions

_TOUCH_SECONDS_MAX = 30.0
"""How often, at least, a task says that it is still there."""

_PATIENCE_SECONDS = DAY_MS // SECOND_MS
"""What a driver allows for all that Spark does before the first task writes."""


@dataclass(frozen=True, slots=True)
class Task:
    """One attempt at a partition."""

    part: PartRef
    query_id: str
    """Of a stream; else empty."""
    batch_id: int

    @classmethod
    def current(cls) -> "Task":
        context = TaskContext.get()
        if context is None:
            raise RuntimeError("a write runs in tasks of Spark")
        # Spark counts attempts anew when a driver starts again, perhaps with the same load.
        attempt = f"task {context.taskAttemptId()} {uuid4()}"
        return cls(
            PartRef(context.partitionId(), attempt),
            context.getLocalProperty("sql.streaming.queryId") or "",
            int(context.getLocalProperty("streaming.sql.batchId") or 0),
        )


def begin(queue: Queue, ref: LoadRef, options: WriteOptions) -> Load:
    """Begin a load on the driver, long before any task may come."""
    timeout = max(options.stage_timeout, _PATIENCE_SECONDS)
    return queue.load(ref.name, epoch=ref.epoch, batch=options.batch, timeout=timeout)


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
    """Say now and then that a task is there, however long its rows take to come."""
    seconds = min(options.stage_timeout / 3, _TOUCH_SECONDS_MAX)
    is_over = Event()

    def touch() -> None:
        while not is_over.wait(seconds):
            # What is wrong the task is told too, by its next call.
            with suppress(QueueberError):
                find(queue, ref, options)

    thread = Thread(target=touch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
