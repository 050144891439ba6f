"""Writes on two hosts that go wrong in several ways, one after the other; each has its own queue.

Prints what the driver saw of each. Files in the given folder are what tasks know of each other.
"""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from queueber.spark import QueueberDataSource
from tests.support.spark_hosts import start_on_two_hosts
from tests.support.spark_sink import wait_until

ROWS, PARTITIONS = 36_000, 3
FAILS_AFTER_BATCHES = 20
"""Of 500 rows: more calls than the server remembers the answers of."""

ADDRESS, FOLDER = sys.argv[1], Path(sys.argv[2])


def is_first(name: str) -> bool:
    """True once, for the first of all processes to ask."""
    try:
        os.close(os.open(FOLDER / name, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def partition_id() -> int:
    context = TaskContext.get()
    assert context is not None
    return context.partitionId()


def rows_of(spark: SparkSession) -> DataFrame:
    return spark.range(0, ROWS, 1, PARTITIONS).selectExpr("string(id) AS contents")


def write(rows: DataFrame, queue: str, method: str) -> str:
    """What the user sees: nothing, or the last line of our error."""
    options = {"address": ADDRESS, "queue": queue, "method": method, "batch": "b"}
    try:
        rows.write.format("queueber").mode("append").options(**options).save()
    except PySparkException as error:
        return next(line for line in str(error).splitlines() if "Error: " in line)
    finally:
        print(f"{queue} is over", flush=True)
    return ""


def fail_half_way(rows: DataFrame, name: str, *, always: bool = False) -> DataFrame:
    def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        is_faulty = partition_id() == 1
        for number, batch in enumerate(batches):
            if is_faulty and number == FAILS_AFTER_BATCHES and (is_first(name) or always):
                raise ValueError("a row that cannot be made")
            yield batch

    return rows.mapInArrow(pass_on, rows.schema)


def slow_once(rows: DataFrame, name: str) -> DataFrame:
    """The first attempt at a partition waits in the middle for another one, then goes on."""

    def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        is_mine = partition_id() == 0
        waits = is_mine and is_first(name)
        if is_mine and not waits:
            (FOLDER / f"{name} again").touch()
        for number, batch in enumerate(batches):
            if waits and number == 2:
                wait_until((FOLDER / f"{name} again").exists)
                (FOLDER / f"{name} at once").touch()
            yield batch

    return rows.mapInArrow(pass_on, rows.schema)


def main() -> None:
    spark = start_on_two_hosts(FOLDER / "workers")
    spark.dataSource.register(QueueberDataSource)
    seen = {}
    for method in ("bulk", "rpc"):
        rows = fail_half_way(rows_of(spark), f"retry {method}")
        seen[f"retry-{method}"] = write(rows, f"retry-{method}", method)
        rows = slow_once(rows_of(spark), f"speculate {method}")
        seen[f"speculate-{method}"] = write(rows, f"speculate-{method}", method)
        assert (FOLDER / f"speculate {method} at once").exists(), "nobody speculated"
    rows = fail_half_way(rows_of(spark), "abort", always=True)
    seen["abort-bulk"] = write(rows, "abort-bulk", "bulk")
    print(json.dumps(seen))
    spark.stop()


if __name__ == "__main__":
    main()
