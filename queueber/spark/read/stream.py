"""Streaming reads of results: what is done, in the order of the log, each row once.

Spark's checkpoint holds the offset that a query has reached. The query acknowledges it to the
server too, so that the server can delete results that nobody needs: under the name that the option
`reader` gives, or under a name that the query makes up at its first start and keeps in the
checkpoint.
"""

from collections.abc import Iterator, Sequence
from uuid import uuid4

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows

from queueber.errors import InvalidArgument
from queueber.spark.options import ReadOptions
from queueber.spark.read.plan import planning, split_offsets
from queueber.spark.read.results import DonePart, read_done, results_gone
from queueber.tables.pages import results_page

Offset = dict[str, int | str]

_NEW_CHECKPOINT = (
    "this query read them; let the queue keep results longer, or start with a new checkpoint to go "
    "on without them"
)


class ResultsStreamReader(DataSourceStreamReader):
    """Reads the table `results` as a stream."""

    def __init__(self, options: ReadOptions, wanted: Sequence[str]) -> None:
        self._options = options
        self._wanted = wanted
        self._made_up = f"spark-{uuid4()}"
        with planning(options):
            pass  # a server or queue that is not there is an error before the query starts

    def initialOffset(self) -> Offset:  # noqa: N802  Spark's name
        """Without `start`: where the reader has acknowledged, if the server knows it."""
        with self._options.connected() as queue:
            log = queue.results_stats()
        reader = self._options.reader
        offset = log.first_offset
        if self._options.start == "latest":
            offset = log.next_offset
        elif self._options.start is None and reader is not None:
            offset = log.readers.get(reader, offset)
        return self._at(offset, self._made_up)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802  Spark's name
        rows = self._options.max_rows
        return ReadAllAvailable() if rows is None else ReadMaxRows(rows)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802  Spark's name
        first = int(start["offset"])
        with self._options.connected() as queue:
            end = queue.results_stats().next_offset
        if end < first:
            raise InvalidArgument(
                f"the checkpoint is at offset {first}, but the results of queue "
                f"{self._options.queue!r} end at {end}: it is another queue than the one that was "
                "read, or was deleted meanwhile; start with a new checkpoint"
            )
        if isinstance(limit, ReadMaxRows):
            end = min(end, first + limit.max_rows)
        return self._at(end, str(start.get("reader", "")))

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        first, last = int(start["offset"]), int(end["offset"])
        with self._options.connected() as queue:
            log = queue.results_stats()
            if self._reader(end) not in log.readers:
                # From its first batch on, the server keeps results for this reader.
                queue.ack_results(self._reader(end), first)
            kept_from = log.first_offset
        if kept_from > first and last > first:
            missed = min(kept_from, last) - first
            raise results_gone(self._options.queue, first, missed, _NEW_CHECKPOINT)
        batch, splits = self._options.batch, self._options.splits
        return [DonePart(None, batch, a, b) for a, b in split_offsets(first, last, splits)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, DonePart)
        with self._options.connected() as queue:
            for page in read_done(queue, partition, self._wanted, _NEW_CHECKPOINT):
                yield results_page(page, self._wanted)

    def commit(self, end: Offset) -> None:
        with self._options.connected() as queue:
            queue.ack_results(self._reader(end), int(end["offset"]))

    def _at(self, offset: int, made_up: str) -> Offset:
        if self._options.reader is not None or not made_up:
            return {"offset": offset}
        return {"offset": offset, "reader": made_up}

    def _reader(self, offset: Offset) -> str:
        return self._options.reader or str(offset.get("reader") or self._made_up)
