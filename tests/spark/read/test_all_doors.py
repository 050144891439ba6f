"""Spark shows what came through every other door to a topic."""

from pyspark.sql import SparkSession

from queueber.testing import ServerProcess
from tests.support.doors import COLUMNS, TOPIC, opened_house, publish_through_all


def test_spark_shows_what_came_through_every_door(
    spark: SparkSession, server: ServerProcess
) -> None:
    with opened_house(server) as house:
        published = publish_through_all(house)
        source = spark.read.format("queueber").option("address", server.address)
        frame = source.option("topic", TOPIC).load()
        columns = frame.selectExpr("*", "unix_millis(timestamp) AS at_ms").orderBy("offset")

        rows = [row.asDict() for row in columns.collect()]

    for row in rows:
        row |= {"payload": bytes(row["payload"]), "key": row["key"] or ""}
    assert [{name: row[name] for name in COLUMNS} for row in rows] == published
