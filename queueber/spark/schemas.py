"""The tables as Spark knows them, and which of their columns a read asks for."""

import pyarrow as pa
from pyspark.sql.types import (
    BinaryType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from queueber.errors import InvalidArgument
from queueber.tables.schemas import ITEMS, RESULTS, TEXT_MAP, TIME

_SPARK_TYPES: dict[pa.DataType, DataType] = {
    pa.string(): StringType(),
    pa.binary(): BinaryType(),
    pa.int32(): IntegerType(),
    pa.int64(): LongType(),
    pa.float64(): DoubleType(),
    TIME: TimestampType(),
    TEXT_MAP: MapType(StringType(), StringType()),
}


def _spark_schema(schema: pa.Schema) -> StructType:
    return StructType([StructField(each.name, _SPARK_TYPES[each.type]) for each in schema])


RESULT_COLUMNS = _spark_schema(RESULTS)
ITEM_COLUMNS = _spark_schema(ITEMS)


def wanted_columns(schema: StructType, table: StructType, name: str) -> tuple[str, ...]:
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
