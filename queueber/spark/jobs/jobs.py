"""Jobs without code: files into a queue, and results into files."""

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as sql

from queueber.errors import InvalidArgument
from queueber.spark.jobs.bad_records import find_bad_record
from queueber.spark.jobs.faults import is_unreadable_input
from queueber.spark.jobs.input import read_items
from queueber.spark.jobs.settings import Input, QueueRef

FORMAT = "queueber"


def enqueue(
    spark: SparkSession,
    given: Input,
    target: QueueRef,
    *,
    method: str = "bulk",
    write_id: str | None = None,
) -> int:
    """Add every row of the input, all of them or none; returns the number of rows.

    The queue may have fewer new items than that: rows with a known key are left out, and a write
    under a `write_id` that was committed before adds nothing.
    """
    options = {**target.options(), "method": method}
    if write_id is not None:
        options["write_id"] = write_id
    rows = Observation()
    try:
        observed = read_items(spark, given).observe(rows, sql.count(sql.lit(1)).alias("rows"))
        observed.write.format(FORMAT).options(**options).mode("append").save()
    except Exception as error:
        if is_unreadable_input(error) and (named := find_bad_record(spark, given)):
            raise InvalidArgument(named) from error
        raise
    return int(rows.get["rows"])


@dataclass(frozen=True, slots=True)
class Exported:
    """How many rows were written."""

    done: int
    dead: int


def export(
    spark: SparkSession,
    source: QueueRef,
    folder: str,
    *,
    status: str | None = None,
    overwrite: bool = False,
) -> Exported:
    """Write results into a folder of Parquet files; the queue keeps them.

    A folder that exists is refused unless it may be overwritten.
    """
    options = source.options()
    if status is not None:
        options["status"] = status
    counts = Observation()
    observed = _counted(spark.read.format(FORMAT).options(**options).load(), counts)
    observed.write.mode("overwrite" if overwrite else "errorifexists").parquet(folder)
    return Exported(**{name: int(value or 0) for name, value in counts.get.items()})


def _counted(results: DataFrame, counts: Observation) -> DataFrame:
    def of(status: str) -> Column:
        return sql.count_if(sql.col("status") == status).alias(status)

    return results.observe(counts, of("done"), of("dead"))
