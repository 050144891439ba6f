"""What the tests of reading share: rows to read, and reads of them."""

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSourceReader

import queueber
from queueber.testing import ServerProcess


def load(
    spark: SparkSession,
    server: ServerProcess,
    queue: queueber.Queue,
    schema: str | None = None,
    **options: object,
) -> DataFrame:
    reading = spark.read.format("queueber").option("address", server.address)
    reading = reading.option("queue", queue.name)
    for name, value in options.items():
        reading = reading.option(name, str(value))
    return (reading.schema(schema) if schema else reading).load()


def complete(queue: queueber.Queue, results: Sequence[bytes], batch: str | None = None) -> None:
    """Add and complete as many items, in calls of up to 5,000."""
    for at in range(0, len(results), 5000):
        part = list(results[at : at + 5000])
        queue.add([b"x"] * len(part), batch=batch)
        done = 0
        while done < len(part):
            lease = queue.poll(1000)
            assert all(lease.complete(part[done : done + len(lease.ids)]))
            done += len(lease.ids)


def kill(queue: queueber.Queue, count: int, batch: str | None = None) -> list[bytes]:
    """Dead letters, all with the same last words."""
    ids: list[bytes] = []
    for at in range(0, count, 5000):
        ids += queue.add([b"poison"] * min(5000, count - at), batch=batch)
    left = count
    while left:
        lease = queue.poll(1000)
        outcomes = lease.fail("it broke", delay=0)
        left -= sum(each is queueber.FailOutcome.DIED for each in outcomes)
    return ids


def sent_rows(reader: DataSourceReader) -> pa.Table:
    """All that a reader gets from the server, before Spark sees it."""
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    return pa.Table.from_batches(batches) if batches else pa.table({})
