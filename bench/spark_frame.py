"""The input of `bench.spark`: a Spark with two cores, and rows that cost hardly any time.

Compiled code in the JVM makes the contents: the number of the row, then a slice of one random blob,
from an offset that depends on the number. So all rows differ, no row exists before it is loaded,
and compression helps no store: the blob is random, and so much longer than a block of RocksDB
(16 KiB or less) or a page of PostgreSQL (8 KiB) that the slices in one of them hardly overlap.
"""

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

CORES = 2
_BLOB_BYTES = 512 * 1024
_ROW_BYTES = 8
_ROOT = Path(__file__).parent.parent


@contextlib.contextmanager
def spark_session(folder: Path) -> Iterator[SparkSession]:
    # The executors' Python processes find this package as the driver does.
    paths = [str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    settings = {
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.local.dir": str(folder / "spark"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        # ANSI mode forbids the cast of a number to bytes, which is twice as fast as alternatives.
        "spark.sql.ansi.enabled": "false",
    }
    builder = SparkSession.Builder().master(f"local[{CORES}]").appName("bench.spark")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    try:
        yield spark
    finally:
        # After an interrupted call Spark cannot be stopped; the JVM ends with this process.
        with contextlib.suppress(Exception):
            spark.stop()


def frame_of(spark: SparkSession, *, rows: int, content_bytes: int, partitions: int) -> DataFrame:
    """A column `contents`, generated whenever it is read."""
    blob = f.lit(os.urandom(_BLOB_BYTES))
    slice_bytes = content_bytes - _ROW_BYTES
    numbers = spark.range(0, rows, 1, partitions)
    number = f.col("id").cast("binary")
    start = f.pmod(f.xxhash64("id"), f.lit(_BLOB_BYTES - slice_bytes)).cast("int") + 1
    return numbers.select(
        f.concat(number, f.substring(blob, start, f.lit(slice_bytes))).alias("contents")
    )


def count_in_python(frame: DataFrame) -> int:
    """Pass every row to the executors' Python as Arrow, and drop it there."""

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = sum(batch.num_rows for batch in batches)
        yield pa.RecordBatch.from_pydict({"rows": [rows]})

    return sum(row["rows"] for row in frame.mapInArrow(count, "rows long").collect())
