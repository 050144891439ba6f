"""The queue as a table: every item that is ready, delayed, leased or dead, as of one moment.

Nothing is leased. Pages are small, and contents are read only if they are wanted, so that those who
add and poll meanwhile do not wait.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from queueber.model import ItemState, SnapshotInfo
from queueber.spark.columns import STATE_WORDS, items_batch, unwanted
from queueber.spark.connect import connected, open_snapshot, planning
from queueber.spark.filters import TakesFilters, wanted_values
from queueber.spark.options import ReadOptions
from queueber.spark.ranges import Cursors, split_items


@dataclass
class ItemsPart(InputPartition):
    snapshot: SnapshotInfo
    state: ItemState
    cursors: Cursors


class ItemsReader(DataSourceReader):
    def __init__(self, options: ReadOptions, wanted: Sequence[str]) -> None:
        self._options = options
        self._wanted = wanted
        self._batch = options.batch
        self._states = set(STATE_WORDS.values())
        self._is_empty = False

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
                ItemsPart(info, state, cursors)
                for state, count in counts.items()
                if STATE_WORDS[state] in self._states and not self._is_empty
                for cursors in split_items(snapshot, state, count, self._options.splits)
            ]
            if not parts:
                snapshot.close()
        return parts

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, ItemsPart)
        part, wanted = partition, self._wanted
        with connected(self._options) as queue:
            snapshot, after = queue.snapshot(part.snapshot), part.cursors.after
            while True:
                page = snapshot.scan(
                    part.state,
                    after=after,
                    before=part.cursors.before,
                    batch=self._batch,
                    without=unwanted(wanted),
                )
                if page.items:
                    yield items_batch(page.items, wanted, part.state, part.snapshot.taken_at_ms)
                if not (after := page.next):
                    return
