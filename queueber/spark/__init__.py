"""Queueber for Spark: a data source that fans work out to a queue and brings results back.

spark.dataSource.register(QueueberDataSource)
results = spark.read.format("queueber").option("queue", "ocr").load()
"""

from typing import Any

__all__ = ["QueueberDataSource"]


def __getattr__(name: str) -> Any:
    """The data source imports pyspark, so it is loaded only when somebody asks for it."""
    if name == "QueueberDataSource":
        from queueber.spark.source import QueueberDataSource

        return QueueberDataSource
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
