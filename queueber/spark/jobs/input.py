"""Files into items: which column of the input becomes what of an item.

Only the contents are chosen without being asked for. A column that happens to be called "key" is
not used as a key: it would keep rows out as duplicates.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields

from pyspark.sql import Column, DataFrame, SparkSession, types
from pyspark.sql import functions as sql

from queueber.errors import InvalidArgument
from queueber.limits import SECOND_MS
from queueber.spark.jobs.settings import Input

# A record that cannot be read fails the job. By default Spark would make a row of nulls of it.
_STRICT = {"mode": "FAILFAST"}
_READER_OPTIONS: Mapping[str, Mapping[str, str]] = {
    "parquet": {},
    "json": _STRICT,
    "csv": {**_STRICT, "header": "true"},
    "text": {},
}

_TEXT_COLUMN = "value"
"""The name that Spark gives to the lines of a text file."""

ATTRIBUTES_TYPE = "map<string, string>"
_NESTED = (types.StructType, types.MapType, types.ArrayType, types.VariantType)


def read_items(spark: SparkSession, given: Input) -> DataFrame:
    """The rows of the files, in the columns that the data source writes."""
    rows = load_files(spark, given, given.paths)
    _check_columns(rows, given)
    return rows.select(*_items(rows, given))


def load_files(
    spark: SparkSession,
    given: Input,
    paths: Sequence[str],
    options: Mapping[str, str] | None = None,
    schema: types.StructType | None = None,
) -> DataFrame:
    """The rows as they are in the files; `options` override those of the input."""
    name = given.format_name
    reader = spark.read.format(name)
    reader = reader.options(**{**_READER_OPTIONS[name], **given.options, **(options or {})})
    return (reader if schema is None else reader.schema(schema)).load(list(paths))


def _check_columns(rows: DataFrame, given: Input) -> None:
    for option in (each.name for each in fields(given) if each.name.endswith("_column")):
        name = getattr(given, option)
        if name is not None and name not in rows.columns:
            raise InvalidArgument(
                f"{option}: the input has no column {name!r}; it has {', '.join(rows.columns)}"
            )


def _items(rows: DataFrame, given: Input) -> list[Column]:
    made = {
        "contents": _contents(rows, given.format_name, given.contents_column),
        "key": _maybe(rows, given.key_column, "string"),
        "priority": _maybe(rows, given.priority_column, "int"),
        "visible_at": _maybe(rows, given.visible_at_column, "timestamp"),
        "attributes": _attributes(rows, given.attributes_column),
    }
    if given.priority is not None:
        made["priority"] = sql.lit(given.priority).cast("int")
    if given.delay_seconds is not None:
        made["delay_ms"] = sql.lit(round(given.delay_seconds * SECOND_MS)).cast("long")
    elif given.delay_column is not None:
        # A decimal is exact: 0.1 as a double is not.
        seconds = named(rows, given.delay_column).cast("decimal(20, 6)")
        made["delay_ms"] = sql.round(seconds * SECOND_MS).cast("long")
    return [column.alias(name) for name, column in made.items() if column is not None]


def named(rows: DataFrame, name: str) -> Column:
    """A column by its whole name: a dot in it is part of the name."""
    return rows[f"`{name.replace('`', '``')}`"]


def _maybe(rows: DataFrame, name: str | None, type_name: str) -> Column | None:
    return None if name is None else named(rows, name).cast(type_name)


def _contents(rows: DataFrame, format_name: str, name: str | None) -> Column:
    if name is None and "contents" in rows.columns:
        name = "contents"
    if name is None and format_name == "text":
        name = _TEXT_COLUMN
    if name is None:
        # Every item has all columns, also those that are null.
        whole = sql.struct(*(named(rows, each) for each in rows.columns))
        return _to_json(whole)
    column = named(rows, name)
    kind = _type_of(rows, name)
    if isinstance(kind, types.StringType | types.BinaryType):
        return column
    return _to_json(column) if isinstance(kind, _NESTED) else column.cast("string")


def _to_json(column: Column) -> Column:
    return sql.to_json(column, {"ignoreNullFields": "false"})


def _type_of(rows: DataFrame, name: str) -> types.DataType:
    return rows.schema.fields[rows.columns.index(name)].dataType


def _attributes(rows: DataFrame, name: str | None) -> Column | None:
    """A map as it is; Spark reads an object of a JSON file as a struct, which becomes a map."""
    if name is None:
        return None
    column = named(rows, name)
    kind = _type_of(rows, name)
    if isinstance(kind, types.StructType):
        return sql.from_json(sql.to_json(column), ATTRIBUTES_TYPE)
    if isinstance(kind, types.StringType):
        return sql.from_json(column, ATTRIBUTES_TYPE, _STRICT)
    return column.cast(ATTRIBUTES_TYPE)
