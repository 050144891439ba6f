"""Batch reads of items: all that are ready, delayed, leased or dead, as of one moment.

Nothing is leased. Pages are small, and contents are read only if they are wanted, so that those who
add and poll meanwhile do not wait.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from queueber.model import ItemState, SnapshotInfo, SnapshotRange
from queueber.spark.connect import connected, open_snapshot, planning
from queueber.spark.options import ReadOptions
from queueber.spark.read.filters import PushedFilters, wanted_values
from queueber.spark.read.splits import split_items
from queueber.tables.pages import items_page
from queueber.tables.schemas import unwanted


@dataclass
class ItemsPart(InputPartition):
    """The items of one task."""

    snapshot: SnapshotInfo
    state: ItemState
    range: SnapshotRange


class ItemsReader(DataSourceReader):
    """Reads the table `items`."""

    def __init__(self, options: ReadOptions, wanted: Sequence[str]) -> None:
        self._options = options
        self._wanted = wanted
        self._batch = options.batch
        self._states = {each.value for each in ItemState}
        self._is_empty = False

    @property
    def pushFilters(self) -> PushedFilters:  # noqa: N802  Spark's name
        return PushedFilters(self._push, is_on=self._options.push_filters)

    def _push(self, condition: Filter) -> bool:
        column, values = wanted_values(condition)
        if column == "state":
            self._states &= values
            return True
        if column == "batch" and len(values) == 1:
            (value,) = values
            if not isinstance(value, str) or not value:
                return False
            self._is_empty = self._is_empty or self._batch not in (None, value)
            self._batch = value
            return True
        return False

    def partitions(self) -> Sequence[InputPartition]:
        with planning(self._options) as queue:
            snapshot = open_snapshot(queue)
            info = snapshot.info
            counts = {
                ItemState.READY: info.ready,
                ItemState.DELAYED: info.delayed,
                ItemState.LEASED: info.leased,
                ItemState.DEAD: info.dead,
            }
            parts = [
                ItemsPart(info, state, each)
                for state, count in counts.items()
                if state.value in self._states and not self._is_empty
                for each in split_items(snapshot, state, count, self._options.splits)
            ]
            if not parts:
                snapshot.close()
        return parts

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, ItemsPart)
        part, wanted = partition, self._wanted
        with connected(self._options) as queue:
            snapshot, after = queue.snapshot(part.snapshot), part.range.after
            while True:
                page = snapshot.scan_columns(
                    part.state,
                    after=after,
                    before=part.range.before,
                    batch=self._batch,
                    without=unwanted(wanted),
                )
                if page.ids:
                    yield items_page(page, wanted, part.state, part.snapshot.taken_at_ms)
                if not (after := page.next):
                    return
