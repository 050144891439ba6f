"""Files into the columns of items: by their format, and by what the options name."""

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from queueber.errors import InvalidArgument
from queueber.spark.jobs.input import read_items
from queueber.spark.jobs.settings import Input


def rows_of(spark: SparkSession, path: Path, **given: object) -> list[dict[str, object]]:
    made = read_items(spark, Input([str(path)], **given))  # type: ignore[arg-type]  # by name
    return [row.asDict() for row in made.collect()]


def test_a_line_of_text_is_an_item(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress("ein\nzwölf\n".encode()))

    assert rows_of(spark, path) == [{"contents": "ein"}, {"contents": "zwölf"}]


def test_a_column_called_contents_is_what_an_item_holds(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"contents": "a", "key": "not asked for"}\n')

    assert rows_of(spark, path) == [{"contents": "a"}]


def test_a_row_without_contents_is_an_object_with_all_columns(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"b.c": 1, "list": [1, 2]}\n{"b.c": 2}\n')

    made = [json.loads(str(row["contents"])) for row in rows_of(spark, path)]

    assert made == [{"b.c": 1, "list": [1, 2]}, {"b.c": 2, "list": None}]


def test_csv_has_a_line_of_names_and_options_of_its_reader(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("order;rank;wait;note\no1;9;0.1;x\n")
    columns = {
        "contents_column": "note",
        "key_column": "order",
        "priority_column": "rank",
        "delay_column": "wait",
    }

    made = rows_of(spark, path, options={"sep": ";"}, **columns)

    assert made == [{"contents": "x", "key": "o1", "priority": 9, "delay_ms": 100}]


def test_columns_of_parquet_keep_bytes_times_and_maps(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "folder"
    at = datetime(2026, 11, 16, 12, tzinfo=UTC)
    given = spark.createDataFrame(
        [(bytearray(b"\xff\x00"), 17, at, {"kind": "raw"})],
        "page binary, number long, at timestamp, more map<string, string>",
    )
    given.write.parquet(str(path))
    columns = {
        "contents_column": "page",
        "key_column": "number",
        "visible_at_column": "at",
        "attributes_column": "more",
    }

    (made,) = rows_of(spark, path, format="parquet", **columns, priority=3)

    assert made["contents"] == b"\xff\x00"
    assert (made["key"], made["priority"], made["attributes"]) == ("17", 3, {"kind": "raw"})
    assert isinstance(made["visible_at"], datetime)
    assert made["visible_at"].timestamp() == at.timestamp()


def test_contents_that_are_no_text_become_such(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"number": 17, "object": {"a": 1}, "texts": {"kind": "raw"}}\n')

    number = rows_of(spark, path, **{"contents_column": "number"})
    nested = rows_of(spark, path, **{"contents_column": "object", "attributes_column": "texts"})

    assert number == [{"contents": "17"}]
    assert nested == [{"contents": '{"a":1}', "attributes": {"kind": "raw"}}]


def test_one_delay_for_all_rows(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("a\n")

    assert rows_of(spark, path, delay_seconds=0.25) == [{"contents": "a", "delay_ms": 250}]


@pytest.mark.parametrize("option", ["contents", "key", "priority", "delay", "attributes"])
def test_a_column_that_is_not_there_is_refused_by_name(
    spark: SparkSession, tmp_path: Path, option: str
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,2\n")

    with pytest.raises(InvalidArgument, match=f"{option}_column: .* no column 'c'; it has a, b"):
        rows_of(spark, path, **{f"{option}_column": "c"})
