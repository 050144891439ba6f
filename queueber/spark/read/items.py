"""Batch reads of items: all that are ready, delayed, leased or dead, as of one moment.

Nothing is leased. Pages are small, and contents are read only if they are wanted, so that those who
add and poll meanwhile do not wait.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from queueber import Snapshot
from queueber.model import Column, ItemColumns, ItemState, SnapshotInfo, SnapshotRange
from queueber.spark.options import ReadOptions
from queueber.spark.read import plan
from queueber.tables.pages import items_page, unwanted


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
    def pushFilters(self) -> plan.PushedFilters:  # noqa: N802  Spark's name
        return plan.PushedFilters(self._push, is_on=self._options.push_filters)

    def _push(self, condition: Filter) -> bool:
        column, values = plan.wanted_values(condition)
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
        with plan.planning(self._options) as queue:
            snapshot = plan.open_snapshot(queue)
            info = snapshot.info
            states = [] if self._is_empty else [s for s in ItemState if s.value in self._states]
            parts = [
                ItemsPart(info, state, each)
                for state in states
                for each in plan.split_items(snapshot, state, self._options.splits)
            ]
            if not parts:
                snapshot.close()
        return parts

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, ItemsPart)
        part, wanted = partition, self._wanted
        with self._options.connected() as queue:
            snapshot = queue.snapshot(part.snapshot)
            for page in scan(snapshot, part.state, part.range, self._batch, unwanted(wanted)):
                yield items_page(page, wanted, part.state, part.snapshot.taken_at_ms)


def scan(
    snapshot: Snapshot,
    state: ItemState,
    within: SnapshotRange,
    batch: str | None,
    without: Sequence[Column],
) -> Iterator[ItemColumns]:
    """The pages of a range that have rows."""
    after = within.after
    while True:
        page = snapshot.scan_columns(
            state, after=after, before=within.before, batch=batch, without=without
        )
        if page.ids:
            yield page
        if not (after := page.next):
            return
