"""Batch reads of results: what is done and what is dead, as of one moment.

The moment is a snapshot on the server, opened when Spark plans the read. What is done is a range of
offsets, what is dead a range of the snapshot; tasks read parts of both side by side.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from queueber import Queue
from queueber.errors import NotFound
from queueber.limits import READ_ITEMS_MAX
from queueber.model import Column, ItemState, ResultColumns, SnapshotInfo, SnapshotRange
from queueber.spark.connect import connected, open_snapshot, planning
from queueber.spark.options import ReadOptions
from queueber.spark.read.filters import PushedFilters, wanted_values
from queueber.spark.read.splits import split_items, split_offsets
from queueber.tables.pages import dead_page, results_page
from queueber.tables.schemas import unwanted

_BATCHES_PUSHED_MAX = 4
"""Each batch is a read of its own. With more batches it is faster to read all rows once, and Spark
filters them."""


class ResultsGone(NotFound):
    """Results that were to be read have been deleted."""


@dataclass
class DonePart(InputPartition):
    """Results by offset."""

    snapshot: SnapshotInfo
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
    def pushFilters(self) -> PushedFilters:  # noqa: N802  Spark's name
        return PushedFilters(self._push, is_on=self._options.push_filters)

    def _push(self, condition: Filter) -> bool:
        column, values = wanted_values(condition)
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
        with planning(self._options) as queue:
            snapshot = open_snapshot(queue)
            parts: list[InputPartition] = []
            info, splits = snapshot.info, self._options.splits
            for batch in self._batches:
                if "done" in self._statuses:
                    parts += [
                        DonePart(info, batch, first, end)
                        for first, end in split_offsets(info.first_offset, info.next_offset, splits)
                    ]
                if "dead" in self._statuses:
                    parts += [
                        DeadPart(info, batch, each)
                        for each in split_items(snapshot, ItemState.DEAD, info.dead, splits)
                    ]
            if not parts:
                snapshot.close()
        return parts

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with connected(self._options) as queue:
            if isinstance(partition, DonePart):
                for page in read_done(queue, partition, self._wanted):
                    yield results_page(page, self._wanted)
            elif isinstance(partition, DeadPart):
                yield from self._read_dead(queue, partition)

    def _read_dead(self, queue: Queue, part: DeadPart) -> Iterator[pa.RecordBatch]:
        snapshot, after = queue.snapshot(part.snapshot), part.range.after
        without = [Column.CONTENTS, *unwanted(self._wanted)]
        while True:
            page = snapshot.scan_columns(
                ItemState.DEAD,
                after=after,
                before=part.range.before,
                batch=part.batch,
                without=without,
            )
            if page.ids:
                yield dead_page(page, self._wanted)
            if not (after := page.next):
                return


def read_done(queue: Queue, part: DonePart, wanted: Sequence[str]) -> Iterator[ResultColumns]:
    """The pages of a part that have rows."""
    while part.first < part.end:
        page = _page(queue, part, wanted)
        if page.missed:
            raise ResultsGone(
                f"{page.missed} results of queue {queue.name!r} from offset {part.first} on were "
                "deleted before they were read; read again, or let the queue keep results longer"
            )
        if page.ids:
            yield page
        part = replace(part, first=page.next_offset)


def _page(queue: Queue, part: DonePart, wanted: Sequence[str]) -> ResultColumns:
    first, before, batch, without = part.first, part.end, part.batch, unwanted(wanted)
    try:
        return queue.snapshot(part.snapshot).read_columns(
            first, before=before, batch=batch, without=without, limit=READ_ITEMS_MAX
        )
    except NotFound:
        # The snapshot has ended. What is at an offset never changes, so the log itself will do
        # unless some of it was deleted.
        return queue.read_columns(
            first, before=before, batch=batch, without=without, limit=READ_ITEMS_MAX
        )
