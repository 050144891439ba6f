"""Writers: a load in two phases. Tasks stage their parts, the driver commits or aborts all of them.

The driver of a batch write makes up the name of the load and begins it. A stream uses the id of its
query as the name and the number of the micro-batch as the epoch; its first task begins the load. A
commit takes the attempts whose messages reached the driver, so retried and speculative tasks never
duplicate a row.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import datasource

from queueber import Load, Queue
from queueber.errors import Aborted
from queueber.model import LoadRef, PartRef
from queueber.spark.options import WriteOptions
from queueber.spark.write.parts import add_rows, stage_files
from queueber.spark.write.task import begin, find, join, kept_alive, this_micro_batch, this_part

Message = datasource.WriterCommitMessage


@dataclass
class Staged(Message):
    """What a task reports to the driver."""

    load: LoadRef
    part: PartRef | None
    """None if there is nothing to commit: it has no rows, or they were added by calls."""
    rows: int
    is_committed: bool = False
    """The load was committed before, so the task wrote nothing."""


@dataclass(frozen=True, slots=True)
class Loading:
    """How both kinds of writers stage, commit and abort a load."""

    options: WriteOptions
    find: Callable[[Queue, LoadRef, WriteOptions], Load]
    """Finds the load or, for a stream, begins it."""

    def stage(self, ref: LoadRef, part: PartRef, batches: Iterator[pa.RecordBatch]) -> Staged:
        options = self.options
        with options.connected(must_exist=False) as queue:
            load = self.find(queue, ref, options)
            if load.is_committed:
                return Staged(ref, None, 0, is_committed=True)
            with kept_alive(queue, ref, options):
                if options.method == "rpc":
                    return Staged(ref, None, add_rows(queue, load, part, batches))
                rows = stage_files(load, part, batches, may_share=options.may_share)
                return Staged(ref, part if rows else None, rows)

    def commit(self, ref: LoadRef, messages: list[Staged]) -> None:
        with self.options.connected(must_exist=False) as queue:
            load = self.find(queue, ref, self.options)
            if load.is_committed:
                return
            if any(message.is_committed for message in messages):
                raise Aborted(
                    f"load {ref.name!r} was committed by somebody else while this write went on"
                )
            load.commit([message.part for message in messages if message.part is not None])

    def abort(self, ref: LoadRef) -> None:
        with self.options.connected(must_exist=False) as queue:
            queue.abort_load(ref.name, epoch=ref.epoch)


class BatchWriter(datasource.DataSourceArrowWriter):
    """Writes a DataFrame as one load."""

    def __init__(self, options: WriteOptions, name: str) -> None:
        """Begins the load."""
        self._loading = Loading(options, find)
        self._ref = LoadRef(name)
        with options.connected(must_exist=False) as queue:
            self._is_committed = begin(queue, self._ref, options).is_committed

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Message:
        if self._is_committed:
            return Staged(self._ref, None, 0, is_committed=True)
        return self._loading.stage(self._ref, this_part(), iterator)

    def commit(self, messages: list[Message | None]) -> None:
        if not self._is_committed:
            staged = [each for each in messages if isinstance(each, Staged)]
            self._loading.commit(self._ref, staged)

    def abort(self, messages: list[Message | None]) -> None:
        self._loading.abort(self._ref)


class StreamWriter(datasource.DataSourceStreamArrowWriter):
    """Writes each micro-batch as one load.

    Spark commits and aborts with another instance, which learns the load from the messages.
    """

    def __init__(self, options: WriteOptions) -> None:
        self._loading = Loading(options, join)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Message:
        return self._loading.stage(this_micro_batch(), this_part(), iterator)

    def commit(self, messages: list[Message | None], batchId: int) -> None:  # noqa: N803
        staged = [each for each in messages if isinstance(each, Staged)]
        if staged:
            self._loading.commit(staged[0].load, staged)

    def abort(self, messages: list[Message | None], batchId: int) -> None:  # noqa: N803
        # Without a message the name of the load is not known. The next attempt at the micro-batch
        # joins the load, or the server drops it after its timeout.
        for each in messages:
            if isinstance(each, Staged):
                self._loading.abort(each.load)
                return
