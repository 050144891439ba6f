"""Writers: a load in two phases. Tasks stage their parts, the driver commits or aborts all of them.

A load is known by its name. That of a write is made on the driver, which begins it. That of a
stream is its query's id, with an epoch for each micro-batch: whichever task comes first begins it.
Only the attempts whose messages reach the driver's commit count, so that retries, and speculative
attempts, never duplicate a row.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from queueber.client import Load, Queue
from queueber.errors import Aborted
from queueber.model import LoadRef, PartRef
from queueber.spark.connect import connected
from queueber.spark.options import WriteOptions
from queueber.spark.task import Task, begin, find, join, kept_alive
from queueber.spark.write_parts import bring_adds, bring_files

Find = Callable[[Queue, LoadRef, WriteOptions], Load]


@dataclass
class Staged(WriterCommitMessage):
    """What a task tells the driver."""

    load: LoadRef
    part: PartRef | None
    """None when nothing is to be committed of it: it has no rows, or they were added by calls."""
    rows: int
    is_committed: bool = False
    """The load was committed before: the task has written nothing."""


class Writing:
    """What both kinds of writers do."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options

    def _stage(
        self, find_load: Find, ref: LoadRef, task: Task, batches: Iterator[pa.RecordBatch]
    ) -> Staged:
        options = self._options
        with connected(options, must_exist=False) as queue:
            load = find_load(queue, ref, options)
            if load.is_committed:
                return Staged(ref, None, 0, is_committed=True)
            with kept_alive(queue, ref, options):
                if options.mode == "rpc":
                    return Staged(ref, None, bring_adds(queue, load, task.part, batches))
                rows = bring_files(load, task.part, batches, may_share=options.may_share)
                return Staged(ref, task.part if rows else None, rows)

    def _commit(self, find_load: Find, ref: LoadRef, messages: list[Staged]) -> None:
        with connected(self._options, must_exist=False) as queue:
            load = find_load(queue, ref, self._options)
            if load.is_committed:
                return
            if any(message.is_committed for message in messages):
                raise Aborted(f"load {ref.name!r} was committed, and is under way again")
            load.commit([message.part for message in messages if message.part is not None])

    def _abort(self, ref: LoadRef) -> None:
        with connected(self._options, must_exist=False) as queue:
            queue.abort_load(ref.name, epoch=ref.epoch)


class BatchWriter(Writing, DataSourceArrowWriter):
    def __init__(self, options: WriteOptions, name: str) -> None:
        """Begins the load."""
        super().__init__(options)
        self._ref = LoadRef(name)
        with connected(options, must_exist=False) as queue:
            self._is_committed = begin(queue, self._ref, options).is_committed

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        if self._is_committed:
            return Staged(self._ref, None, 0, is_committed=True)
        return self._stage(find, self._ref, Task.current(), iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        if not self._is_committed:
            staged = [each for each in messages if isinstance(each, Staged)]
            self._commit(find, self._ref, staged)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        self._abort(self._ref)


class StreamWriter(Writing, DataSourceStreamArrowWriter):
    """Commits and aborts are done by another instance, which knows the load from its messages."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        task = Task.current()
        ref = LoadRef(f"stream {task.query_id}", task.batch_id)
        return self._stage(join, ref, task, iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        staged = [each for each in messages if isinstance(each, Staged)]
        if staged:
            self._commit(join, staged[0].load, staged)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        # Without a message nobody knows the load's name; it is dropped when its time is up, or
        # taken up by the next attempt at the same micro-batch.
        for each in messages:
            if isinstance(each, Staged):
                self._abort(each.load)
                return
