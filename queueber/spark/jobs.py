"""Jobs for people who want no code: files into a queue, and results into files."""

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as sql

from queueber.spark.jobs_input import Input, read_items

FORMAT = "queueber"


@dataclass(frozen=True, slots=True)
class Place:
    """A queue on a server, and a batch in it; None: of no batch, or of all."""

    address: str
    queue: str
    batch: str | None = None

    def options(self) -> dict[str, str]:
        named = {"address": self.address, "queue": self.queue, "batch": self.batch}
        return {name: value for name, value in named.items() if value is not None}


def enqueue(
    spark: SparkSession,
    given: Input,
    place: Place,
    *,
    mode: str = "bulk",
    write_id: str | None = None,
) -> int:
    """Add every row of the input, all of them or none; returns how many rows there were.

    Fewer may be in the queue then: a key keeps others out, and a write that was made before under
    the same `write_id` is not made again.
    """
    rows = Observation()
    observed = read_items(spark, given).observe(rows, sql.count(sql.lit(1)).alias("rows"))
    options = {**place.options(), "mode": mode}
    if write_id is not None:
        options["write_id"] = write_id
    observed.write.format(FORMAT).options(**options).mode("append").save()
    return int(rows.get["rows"])


@dataclass(frozen=True, slots=True)
class Drained:
    """How many rows were written."""

    done: int
    dead: int


def drain(
    spark: SparkSession,
    place: Place,
    target: str,
    *,
    status: str | None = None,
    overwrite: bool = False,
) -> Drained:
    """Write results into a folder of Parquet files. One that is there is refused, or replaced."""
    options = place.options()
    if status is not None:
        options["status"] = status
    counts = Observation()
    observed = _counted(spark.read.format(FORMAT).options(**options).load(), counts)
    observed.write.mode("overwrite" if overwrite else "errorifexists").parquet(target)
    return Drained(**{name: int(value or 0) for name, value in counts.get.items()})


def _counted(results: DataFrame, counts: Observation) -> DataFrame:
    def of(status: str) -> Column:
        return sql.count_if(sql.col("status") == status).alias(status)

    return results.observe(counts, of("done"), of("dead"))
