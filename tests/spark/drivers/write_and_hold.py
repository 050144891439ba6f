"""Write under a name; one partition comes to its end, the other holds until somebody ends us."""

import sys
import time
from collections.abc import Iterator

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession

from queueber.spark import QueueberDataSource

ADDRESS, QUEUE, STAGE_TIMEOUT = sys.argv[1:]


def hold(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    context = TaskContext.get()
    assert context is not None
    for number, batch in enumerate(batches):
        if context.partitionId() == 1 and number == 1:
            time.sleep(600)
        yield batch


def main() -> None:
    spark = SparkSession.builder.getOrCreate()
    spark.dataSource.register(QueueberDataSource)
    rows = spark.range(0, 4000, 1, 2).selectExpr("string(id) AS contents")
    rows.mapInArrow(hold, rows.schema).write.format("queueber").mode("append").options(
        address=ADDRESS, queue=QUEUE, write_id="monday", batch="b", stage_timeout=STAGE_TIMEOUT
    ).save()


if __name__ == "__main__":
    main()
