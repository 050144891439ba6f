"""Jobs without code: files into a queue, and results into files.

Both take options of the data source; None is an option that is not given.
"""

from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as sql

from queueber.errors import InvalidArgument
from queueber.spark.jobs.bad_records import find_bad_record
from queueber.spark.jobs.faults import is_unreadable_input
from queueber.spark.jobs.input import read_items
from queueber.spark.jobs.settings import Input

FORMAT = "queueber"


def enqueue(spark: SparkSession, given: Input, **options: str | None) -> int:
    """Add every row of the input, all of them or none; returns the number of rows.

    The queue may have fewer new items than that: rows with a known key are left out, and a write
    under a `write_id` that was committed before adds nothing.
    """
    rows = Observation()
    try:
        observed = read_items(spark, given).observe(rows, sql.count(sql.lit(1)).alias("rows"))
        observed.write.format(FORMAT).options(**_given(options)).mode("append").save()
    except Exception as error:
        if is_unreadable_input(error) and (named := find_bad_record(spark, given)):
            raise InvalidArgument(named) from error
        raise
    return int(rows.get["rows"])


def export(
    spark: SparkSession, folder: str, *, overwrite: bool = False, **options: str | None
) -> dict[str, int]:
    """Write results into a folder of Parquet files; the queue keeps them.

    A folder that exists is refused unless it may be overwritten. Returns how many rows were
    written of those that are `done`, and `dead`.
    """
    counts, statuses = Observation(), ("done", "dead")
    results = spark.read.format(FORMAT).options(**_given(options)).load()
    numbers = [sql.count_if(sql.col("status") == each).alias(each) for each in statuses]
    observed = results.observe(counts, *numbers)
    observed.write.mode("overwrite" if overwrite else "errorifexists").parquet(folder)
    return {each: int(counts.get[each] or 0) for each in statuses}


def _given(options: dict[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in options.items() if value is not None}
