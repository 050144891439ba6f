"""The columns of DataFrames: those of the tables that are read, and those that can be written."""

import pyarrow as pa
from pyspark.sql import types

from queueber.errors import InvalidArgument
from queueber.tables.messages import MESSAGES
from queueber.tables.new_messages import PAYLOAD_NAMES
from queueber.tables.pages import ITEMS, RESULTS, TEXT_LIST, TEXT_MAP, TIME

_SPARK_TYPES: dict[pa.DataType, types.DataType] = {
    pa.string(): types.StringType(),
    pa.binary(): types.BinaryType(),
    pa.int32(): types.IntegerType(),
    pa.int64(): types.LongType(),
    pa.float64(): types.DoubleType(),
    TIME: types.TimestampType(),
    TEXT_MAP: types.MapType(types.StringType(), types.StringType()),
    TEXT_LIST: types.ArrayType(types.StringType()),
}


def _spark_schema(schema: pa.Schema) -> types.StructType:
    return types.StructType(
        [types.StructField(each.name, _SPARK_TYPES[each.type]) for each in schema]
    )


RESULT_COLUMNS = _spark_schema(RESULTS)
ITEM_COLUMNS = _spark_schema(ITEMS)
MESSAGE_COLUMNS = _spark_schema(MESSAGES)


def wanted_columns(schema: types.StructType, table: types.StructType, name: str) -> tuple[str, ...]:
    """The names of the columns that a schema asks for, in its order."""
    kinds = {field.name: field.dataType for field in table.fields}
    for field in schema.fields:
        if field.name not in kinds:
            raise InvalidArgument(
                f"column {field.name!r} is not one of the table {name!r}, which has "
                f"{', '.join(kinds)}"
            )
        if field.dataType.simpleString() != kinds[field.name].simpleString():
            raise InvalidArgument(
                f"column {field.name!r} is {kinds[field.name].simpleString()}, not "
                f"{field.dataType.simpleString()}"
            )
    return tuple(field.name for field in schema.fields)


# --- columns to write -----------------------------------------------------------------------------

_INTEGERS = (types.ByteType, types.ShortType, types.IntegerType, types.LongType)
_Wanted = dict[str, tuple[tuple[type[types.DataType], ...], str]]
_BYTES = ((types.BinaryType, types.StringType), "binary or string")
_KEY = ((types.StringType,), "string")
_ATTRIBUTES = ((types.MapType,), "map<string,string>")
_OF_ITEMS: _Wanted = {
    "contents": _BYTES,
    "key": _KEY,
    "delay_ms": (_INTEGERS, "an integer"),
    "visible_at": ((types.TimestampType,), "timestamp"),
    "priority": (_INTEGERS, "an integer"),
    "attributes": _ATTRIBUTES,
}
_OF_MESSAGES: _Wanted = {
    **dict.fromkeys(PAYLOAD_NAMES, _BYTES),
    "key": _KEY,
    "attributes": _ATTRIBUTES,
    "partition": (_INTEGERS, "an integer"),
}


def check_written(schema: types.StructType) -> None:
    """`InvalidArgument` names the first column that cannot be written to a queue."""
    names = [field.name for field in schema.fields]
    if "contents" not in names:
        raise InvalidArgument(
            f"column 'contents' is missing; the DataFrame has {', '.join(names) or 'none'}; select "
            "what the items are to hold AS contents"
        )
    if "delay_ms" in names and "visible_at" in names:
        raise InvalidArgument("column 'delay_ms': there is 'visible_at' too; give one of the two")
    _check_columns(schema, _OF_ITEMS, "queue")


def check_written_messages(schema: types.StructType) -> None:
    """`InvalidArgument` names the first column that cannot be written to a topic."""
    names = [field.name for field in schema.fields]
    if "payload" not in names and "value" not in names:
        raise InvalidArgument(
            f"column 'payload' is missing; the DataFrame has {', '.join(names) or 'none'}; select "
            "what the messages are to hold AS payload"
        )
    if "payload" in names and "value" in names:
        raise InvalidArgument("column 'value': there is 'payload' too; give one of the two")
    _check_columns(schema, _OF_MESSAGES, "topic")


def _check_columns(schema: types.StructType, wanted: _Wanted, what: str) -> None:
    names = [field.name for field in schema.fields]
    for field in schema.fields:
        if field.name not in wanted:
            raise InvalidArgument(
                f"column {field.name!r}: a {what} has no such column; it has {', '.join(wanted)}"
            )
        if names.count(field.name) > 1:
            raise InvalidArgument(
                f"column {field.name!r}: the DataFrame has several columns of that name"
            )
        types, text = wanted[field.name]
        if not isinstance(field.dataType, types) or not _is_of_strings(field.dataType):
            raise InvalidArgument(
                f"column {field.name!r}: it is {field.dataType.simpleString()}; it must be {text}"
            )


def _is_of_strings(kind: types.DataType) -> bool:
    """Whether a map has strings for keys and values; True for other types."""
    return not isinstance(kind, types.MapType) or (
        isinstance(kind.keyType, types.StringType) and isinstance(kind.valueType, types.StringType)
    )
