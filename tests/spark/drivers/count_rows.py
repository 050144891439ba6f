"""Count rows in executors; with `hold`, wait in the middle until somebody ends us."""

import json
import os
import sys
import time
from collections.abc import Iterable

from pyspark.sql import SparkSession


def where(rows: Iterable[object]) -> Iterable[tuple[int, int, int]]:
    """Of a task: its process, the executor above that, and how many rows there were."""
    yield os.getpid(), os.getppid(), sum(1 for _ in rows)


def hold(rows: Iterable[object]) -> Iterable[object]:
    time.sleep(600)
    yield from rows


def main() -> None:
    spark = SparkSession.builder.getOrCreate()
    rows = spark.range(1000).rdd.repartition(2)
    told = rows.mapPartitions(where).collect()
    print(json.dumps({"rows": sum(each[2] for each in told), "tasks": len(told)}))
    if sys.argv[1:] == ["hold"]:
        print("holding", flush=True)
        rows.mapPartitions(hold).count()
    spark.stop()


if __name__ == "__main__":
    main()
