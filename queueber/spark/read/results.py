"""Batch reads of results: what is done and what is dead, as of one moment.

The moment is a snapshot on the server, opened when Spark plans the read. What is done is a range of
offsets, what is dead a range of the snapshot; tasks read parts of both side by side.
"""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from queueber import Queue, Snapshot
from queueber.errors import NotFound
from queueber.limits import READ_ITEMS_MAX
from queueber.model import Column, ItemState, ResultColumns, SnapshotInfo, SnapshotRange
from queueber.spark.options import ReadOptions
from queueber.spark.read import plan
from queueber.spark.read.items import scan
from queueber.tables.pages import dead_page, results_page, unwanted

_BATCHES_PUSHED_MAX = 4
"""Each batch is a read of its own. With more batches it is faster to read all rows once, and Spark
filters them."""

_READ_AGAIN = "they were read; read again, or let the queue keep results longer"


class ResultsGone(NotFound):
    """Results that were to be read have been deleted."""


def results_gone(queue: str, first: int, count: int, then: str) -> ResultsGone:
    """`then` says before what they were deleted, and what to do."""
    where = f"{count} results of queue {queue!r} from offset {first} on"
    return ResultsGone(f"{where} were deleted before {then}")


@dataclass
class DonePart(InputPartition):
    """Results by offset."""

    snapshot: SnapshotInfo | None
    """None for a stream, which reads what the queue keeps."""
    batch: str | None
    first: int
    end: int


@dataclass
class DeadPart(InputPartition):
    """Dead letters of a range of the snapshot."""

    snapshot: SnapshotInfo
    batch: str | None
    range: SnapshotRange


class ResultsReader(DataSourceReader):
    """Reads the table `results`."""

    def __init__(self, options: ReadOptions, wanted: Sequence[str]) -> None:
        self._options = options
        self._wanted = wanted
        self._statuses = set(options.statuses)
        self._batches: list[str | None] = [options.batch]

    @property
    def pushFilters(self) -> plan.PushedFilters:  # noqa: N802  Spark's name
        return plan.PushedFilters(self._push, is_on=self._options.push_filters)

    def _push(self, condition: Filter) -> bool:
        column, values = plan.wanted_values(condition)
        if column == "status":
            self._statuses &= values
            return True
        if column == "batch" and len(values) <= _BATCHES_PUSHED_MAX:
            if not all(isinstance(each, str) and each for each in values):
                return False
            asked = [each for each in self._batches if each is None or each in values]
            self._batches = sorted(values) if None in asked else asked
            return True
        return False

    def partitions(self) -> Sequence[InputPartition]:
        with plan.planning(self._options) as queue:
            snapshot = plan.open_snapshot(queue)
            parts: list[InputPartition] = []
            info, splits = snapshot.info, self._options.splits
            for batch in self._batches:
                if "done" in self._statuses:
                    ranges = plan.split_offsets(info.first_offset, info.next_offset, splits)
                    parts += [DonePart(info, batch, first, end) for first, end in ranges]
                if "dead" in self._statuses:
                    parts += [
                        DeadPart(info, batch, each)
                        for each in plan.split_items(snapshot, ItemState.DEAD, splits)
                    ]
            if not parts:
                snapshot.close()
        return parts

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with self._options.connected() as queue:
            if isinstance(partition, DonePart):
                for page in read_done(queue, partition, self._wanted, _READ_AGAIN):
                    yield results_page(page, self._wanted)
            elif isinstance(partition, DeadPart):
                snapshot = queue.snapshot(partition.snapshot)
                without = [Column.CONTENTS, *unwanted(self._wanted)]
                within, batch = partition.range, partition.batch
                for dead in scan(snapshot, ItemState.DEAD, within, batch, without):
                    yield dead_page(dead, self._wanted)


def read_done(
    queue: Queue, part: DonePart, wanted: Sequence[str], then: str
) -> Iterator[ResultColumns]:
    """The pages of a part that have rows; `then` is for `results_gone`."""
    while part.first < part.end:
        page = _page(queue, part, wanted)
        if page.missed:
            raise results_gone(queue.name, part.first, page.missed, then)
        if page.ids:
            yield page
        part = replace(part, first=page.next_offset)


def _page(queue: Queue, part: DonePart, wanted: Sequence[str]) -> ResultColumns:
    def read(log: Queue | Snapshot) -> ResultColumns:
        without = unwanted(wanted)
        return log.read_columns(
            part.first, before=part.end, batch=part.batch, without=without, limit=READ_ITEMS_MAX
        )

    if part.snapshot is not None:
        # The snapshot may have ended. What is at an offset never changes, so the log itself will
        # do unless some of it was deleted.
        with contextlib.suppress(NotFound):
            return read(queue.snapshot(part.snapshot))
    return read(queue)
