"""Batch reads of results: what is done and what is dead, as of one moment.

The moment is a snapshot on the server, opened when Spark plans the read. What was done is a range
of offsets, what is dead a range of ids; both are cut into parts that tasks read side by side.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from queueber.client import Queue
from queueber.errors import NotFound
from queueber.limits import READ_ITEMS_MAX
from queueber.model import Column, ItemState, Results, SnapshotInfo
from queueber.spark.columns import dead_batch, results_batch, unwanted
from queueber.spark.connect import connected, open_snapshot, planning
from queueber.spark.filters import TakesFilters, wanted_values
from queueber.spark.options import ReadOptions
from queueber.spark.ranges import Cursors, split_items, split_offsets

_BATCHES_PUSHED_MAX = 4
"""Each batch is a read of its own, so many are better read together and sorted out by Spark."""


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
    """Dead letters by cursor."""

    snapshot: SnapshotInfo
    batch: str | None
    cursors: Cursors


class ResultsReader(DataSourceReader):
    def __init__(self, options: ReadOptions, wanted: Sequence[str]) -> None:
        self._options = options
        self._wanted = wanted
        self._statuses = set(options.statuses)
        self._batches: list[str | None] = [options.batch]

    @property
    def pushFilters(self) -> TakesFilters:  # noqa: N802  Spark's name
        return TakesFilters(self._take_filters)

    def _take_filters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Only when asked to: see the option in `docs/spark.md`."""
        for each in filters:
            if not self._options.push_filters or not self._push(each):
                yield each

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
                        DeadPart(info, batch, cursors)
                        for cursors in split_items(snapshot, ItemState.DEAD, info.dead, splits)
                    ]
            if not parts:
                snapshot.close()
        return parts

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with connected(self._options) as queue:
            if isinstance(partition, DonePart):
                for page in read_done(queue, partition, self._wanted):
                    yield results_batch(page.results, self._wanted)
            elif isinstance(partition, DeadPart):
                yield from self._read_dead(queue, partition)

    def _read_dead(self, queue: Queue, part: DeadPart) -> Iterator[pa.RecordBatch]:
        snapshot, after = queue.snapshot(part.snapshot), part.cursors.after
        without = [Column.CONTENTS, *unwanted(self._wanted)]
        while True:
            page = snapshot.scan(
                ItemState.DEAD,
                after=after,
                before=part.cursors.before,
                batch=part.batch,
                without=without,
            )
            if page.items:
                yield dead_batch(page.items, self._wanted)
            if not (after := page.next):
                return


def read_done(queue: Queue, part: DonePart, wanted: Sequence[str]) -> Iterator[Results]:
    """The pages of a part that have rows."""
    while part.first < part.end:
        page = _page(queue, part, wanted)
        if page.missed:
            raise ResultsGone(
                f"{page.missed} results of queue {queue.name!r} from offset {part.first} on were "
                "deleted before they were read; read again, or let the queue keep results longer"
            )
        if page.results:
            yield page
        part = replace(part, first=page.next_offset)


def _page(queue: Queue, part: DonePart, wanted: Sequence[str]) -> Results:
    first, before, batch, without = part.first, part.end, part.batch, unwanted(wanted)
    try:
        return queue.snapshot(part.snapshot).read_results(
            first, before=before, batch=batch, without=without, limit=READ_ITEMS_MAX
        )
    except NotFound:
        # The snapshot has ended, but what is at an offset never changes: all is well unless some
        # of it was deleted.
        return queue.read_results(
            first, before=before, batch=batch, without=without, limit=READ_ITEMS_MAX
        )
