"""Which record of the input is bad: Spark does not say, so we search after a job has failed."""

from collections.abc import Iterator, Sequence
from urllib.parse import unquote

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StringType, StructField, StructType

from queueber.spark.jobs.input import ATTRIBUTES_TYPE, load_files, named
from queueber.spark.jobs.settings import Input

_BAD, _FIELD, _VALUE = "__bad_record", "__field", "__value"
_FILE, _BLOCK, _ID = "__file", "__block", "__id"
_PERMISSIVE = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _BAD}
_NO_COLUMN = StructField("__none", StringType())
_SHOWN_CHARS = 100

_MUST_BE = {
    "priority": ("int", "a whole number"),
    "delay": ("decimal(20, 6)", "a number of seconds"),
    "visible_at": ("timestamp", "a timestamp"),
    "attributes": (ATTRIBUTES_TYPE, "a JSON object"),
}


def find_bad_record(spark: SparkSession, given: Input) -> str | None:
    """An error that names the file and number of a bad record; None if no record is bad.

    A record is bad if Spark cannot parse it, or cannot convert a value that an item needs. Records
    are counted from 1, without blank lines and without the line of names of a CSV file.
    """
    found = _bad_records(_rows(spark, given, given.paths), given).first()
    if found is None:
        return None
    file = unquote(found[_FILE])
    number = _number_in(spark, given, file)
    where = file if number is None else f"record {number} of {file}"
    field, value = found[_FIELD], repr(found[_VALUE][:_SHOWN_CHARS])
    if field == _BAD:
        return f"{where} cannot be read as {given.format_name}: {value}"
    return f"{field}_column: {where} has {value}; it must be {_MUST_BE[field][1]}"


def _number_in(spark: SparkSession, given: Input, file: str) -> int | None:
    """The number of the first bad record of a file; None if its name does not work as a path."""
    try:
        rows = _rows(spark, given, [file])
    except AnalysisException:
        return None
    bad = _bad_records(rows, given).orderBy(_BLOCK, _ID).first()
    if bad is None:
        return None
    block, at = sql.col(_BLOCK), sql.col(_ID)
    is_before = (block < bad[_BLOCK]) | ((block == bad[_BLOCK]) & (at < bad[_ID]))
    return rows.where(is_before).count() + 1


def _rows(spark: SparkSession, given: Input, paths: Sequence[str]) -> DataFrame:
    """All rows, with their place in their file. A row that cannot be parsed has its text."""
    rows = load_files(spark, given, paths, _PERMISSIVE)
    if given.format_name in ("json", "csv"):
        # Spark wants another column beside the bad records, though none of them has any.
        others = [each for each in rows.schema.fields if each.name != _BAD] or [_NO_COLUMN]
        schema = StructType([*others, StructField(_BAD, StringType())])
        rows = load_files(spark, given, paths, _PERMISSIVE, schema)
    return rows.select(
        "*",
        sql.col("_metadata.file_path").alias(_FILE),
        sql.col("_metadata.file_block_start").alias(_BLOCK),
        sql.monotonically_increasing_id().alias(_ID),
    )


def _bad_records(rows: DataFrame, given: Input) -> DataFrame:
    fields = list(_bad_fields(rows, given))
    if not fields:
        return rows.limit(0)
    field = sql.coalesce(*(sql.when(is_bad, sql.lit(name)) for name, _, is_bad in fields))
    value = sql.coalesce(*(sql.when(is_bad, text) for _, text, is_bad in fields))
    return rows.withColumns({_FIELD: field, _VALUE: value}).where(f"{_FIELD} IS NOT NULL")


def _bad_fields(rows: DataFrame, given: Input) -> Iterator[tuple[str, Column, Column]]:
    """What may be bad: its name, its value as text, and whether it is bad."""
    if _BAD in rows.columns:
        yield _BAD, sql.col(_BAD), sql.col(_BAD).isNotNull()
    for name, (kind, _) in _MUST_BE.items():
        column_name = getattr(given, f"{name}_column")
        if column_name is None:
            continue
        column = named(rows, column_name)
        if name == "attributes":
            if dict(rows.dtypes)[column_name] != "string":
                continue
            converted = sql.from_json(column, kind)
        else:
            converted = column.try_cast(kind)
        yield name, column.cast("string"), column.isNotNull() & converted.isNull()
