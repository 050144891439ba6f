"""The columns that a DataFrame may have to be written, and their types."""

from pyspark.sql.types import (
    BinaryType,
    ByteType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
    TimestampType,
)

from queueber.errors import InvalidArgument

_INTEGERS = (ByteType, ShortType, IntegerType, LongType)
_WANTED: dict[str, tuple[tuple[type[DataType], ...], str]] = {
    "contents": ((BinaryType, StringType), "binary or string"),
    "key": ((StringType,), "string"),
    "delay_ms": (_INTEGERS, "an integer"),
    "visible_at": ((TimestampType,), "timestamp"),
    "priority": (_INTEGERS, "an integer"),
    "attributes": ((MapType,), "map<string,string>"),
}


def check_columns(schema: StructType) -> None:
    """`InvalidArgument` names the first column that cannot be written."""
    names = [field.name for field in schema.fields]
    if "contents" not in names:
        raise InvalidArgument(
            f"column 'contents' is missing; the DataFrame has {', '.join(names) or 'none'}; select "
            "what the items are to hold AS contents"
        )
    if "delay_ms" in names and "visible_at" in names:
        raise InvalidArgument("column 'delay_ms': there is 'visible_at' too; give one of the two")
    for field in schema.fields:
        if field.name not in _WANTED:
            raise InvalidArgument(
                f"column {field.name!r}: a queue has no such column; it has {', '.join(_WANTED)}"
            )
        if names.count(field.name) > 1:
            raise InvalidArgument(
                f"column {field.name!r}: the DataFrame has several columns of that name"
            )
        types, text = _WANTED[field.name]
        if not isinstance(field.dataType, types) or not _is_of_strings(field.dataType):
            raise InvalidArgument(
                f"column {field.name!r}: it is {field.dataType.simpleString()}; it must be {text}"
            )


def _is_of_strings(kind: DataType) -> bool:
    """Whether a map has strings for keys and values; True for other types."""
    return not isinstance(kind, MapType) or (
        isinstance(kind.keyType, StringType) and isinstance(kind.valueType, StringType)
    )
