"""Files into items: which format they have, and which column is what of an item.

Nothing of a row is guessed but its contents: a column that happens to be called "key" would
otherwise keep rows out as duplicates.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import PurePosixPath

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    MapType,
    StringType,
    StructType,
    VariantType,
)

from queueber.errors import InvalidArgument
from queueber.limits import SECOND_MS

FORMATS = ("parquet", "json", "csv", "text")

_EXTENSIONS = {
    ".parquet": "parquet",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".csv": "csv",
    ".txt": "text",
    ".text": "text",
    ".log": "text",
}
_COMPRESSED = {".gz", ".bz2", ".zst", ".snappy", ".lz4", ".deflate"}

# A line that cannot be read ends the job: Spark would else make an item of nulls of it.
_STRICT = {"mode": "FAILFAST"}
_READER_OPTIONS: Mapping[str, Mapping[str, str]] = {
    "parquet": {},
    "json": _STRICT,
    "csv": {**_STRICT, "header": "true"},
    "text": {},
}

_TEXT_COLUMN = "value"
"""What Spark calls the lines of a text file."""

_NESTED = (StructType, MapType, ArrayType, VariantType)


@dataclass(frozen=True, slots=True)
class ItemColumns:
    """Names of columns of the input; None: there is none."""

    contents: str | None = None
    """None: "contents"; of text its lines; else the whole row as JSON."""
    key: str | None = None
    priority: str | None = None
    delay: str | None = None
    """In seconds."""
    visible_at: str | None = None
    attributes: str | None = None


@dataclass(frozen=True, slots=True)
class Input:
    """Where rows come from, and what of them makes an item."""

    paths: Sequence[str]
    format: str | None = None
    """None: as the names of the files say."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Of Spark's reader; they go before ours."""
    columns: ItemColumns = field(default_factory=ItemColumns)
    priority: int | None = None
    delay_seconds: float | None = None
    """The same for all rows."""


def read_items(spark: SparkSession, given: Input) -> DataFrame:
    """The rows of the files, in the columns that the data source writes."""
    format_name = given.format or format_of(given.paths)
    options = {**_READER_OPTIONS[format_name], **given.options}
    rows = spark.read.format(format_name).options(**options).load(list(given.paths))
    _check_columns(rows, given.columns)
    return rows.select(*_items(rows, format_name, given))


def format_of(paths: Sequence[str]) -> str:
    """By their extensions, which must agree."""
    found = {_extension(path): path for path in paths}
    unknown = [path for extension, path in found.items() if extension not in _EXTENSIONS]
    if unknown:
        raise InvalidArgument(
            f"format: the name {unknown[0]!r} does not tell it; it is one of {', '.join(FORMATS)}"
        )
    formats = sorted({_EXTENSIONS[extension] for extension in found})
    if len(formats) > 1:
        raise InvalidArgument(
            f"format: the input is {' and '.join(formats)}; a job reads files of one format"
        )
    return formats[0]


def _extension(path: str) -> str:
    """Of a file, a folder, or a pattern such as `logs/*.json.gz`; in small letters."""
    name = PurePosixPath(path.lower().rstrip("/"))
    return PurePosixPath(name.stem).suffix if name.suffix in _COMPRESSED else name.suffix


def _check_columns(rows: DataFrame, columns: ItemColumns) -> None:
    for each in fields(columns):
        name = getattr(columns, each.name)
        if name is not None and name not in rows.columns:
            raise InvalidArgument(
                f"{each.name}_column: the input has no column {name!r}; it has "
                f"{', '.join(rows.columns)}"
            )


def _items(rows: DataFrame, format_name: str, given: Input) -> list[Column]:
    columns = given.columns
    made = {
        "contents": _contents(rows, format_name, columns.contents),
        "key": _maybe(rows, columns.key, "string"),
        "priority": _maybe(rows, columns.priority, "int"),
        "visible_at": _maybe(rows, columns.visible_at, "timestamp"),
        "attributes": _attributes(rows, columns.attributes),
    }
    if given.priority is not None:
        made["priority"] = sql.lit(given.priority).cast("int")
    if given.delay_seconds is not None:
        made["delay_ms"] = sql.lit(round(given.delay_seconds * SECOND_MS)).cast("long")
    elif columns.delay is not None:
        # Exact: 0.1 of a double is not.
        seconds = _named(rows, columns.delay).cast("decimal(20, 6)")
        made["delay_ms"] = sql.round(seconds * SECOND_MS).cast("long")
    return [column.alias(name) for name, column in made.items() if column is not None]


def _named(rows: DataFrame, name: str) -> Column:
    """A column by its whole name: dots in it are no path."""
    return rows[f"`{name.replace('`', '``')}`"]


def _maybe(rows: DataFrame, name: str | None, type_name: str) -> Column | None:
    return None if name is None else _named(rows, name).cast(type_name)


def _contents(rows: DataFrame, format_name: str, name: str | None) -> Column:
    if name is None and "contents" in rows.columns:
        name = "contents"
    if name is None and format_name == "text":
        name = _TEXT_COLUMN
    if name is None:
        # Every column is there in every item, also where it is null.
        whole = sql.struct(*(_named(rows, each) for each in rows.columns))
        return _to_json(whole)
    column = _named(rows, name)
    kind = _type_of(rows, name)
    if isinstance(kind, StringType | BinaryType):
        return column
    return _to_json(column) if isinstance(kind, _NESTED) else column.cast("string")


def _to_json(column: Column) -> Column:
    return sql.to_json(column, {"ignoreNullFields": "false"})


def _type_of(rows: DataFrame, name: str) -> DataType:
    return rows.schema.fields[rows.columns.index(name)].dataType


def _attributes(rows: DataFrame, name: str | None) -> Column | None:
    """A map as it is; JSON files have objects, which Spark reads as structs."""
    if name is None:
        return None
    column = _named(rows, name)
    kind = _type_of(rows, name)
    if isinstance(kind, StructType):
        return sql.from_json(sql.to_json(column), "map<string, string>")
    if isinstance(kind, StringType):
        return sql.from_json(column, "map<string, string>", _STRICT)
    return column.cast("map<string, string>")
