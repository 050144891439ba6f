"""Queueber for Spark: a data source that fans work out and brings results back.

spark.dataSource.register(QueueberDataSource)
results = spark.read.format("queueber").option("queue", "ocr").load()
"""

from queueber.spark.source import QueueberDataSource

__all__ = ["QueueberDataSource"]
