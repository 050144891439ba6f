"""Parameters of a statement, on their way to the engine."""

import json
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal

from queueber.errors import InvalidArgument
from queueber.limits import SQL_LISTS_MAX


def pack_parameter(number: int, value: object, lists: int = 0) -> object:
    """A value as JSON has it. Raises `InvalidArgument` for what is no value of SQL."""
    match value:
        case None | bool() | str():
            return value
        case int():
            if not -(1 << 127) < value < 1 << 127:
                raise InvalidArgument(f"params: ${number} is {value}; it must fit into 128 bits")
            return {"int": str(value)}
        case float():
            return {"float": repr(value)}
        case Decimal() if value.is_finite():
            return {"decimal": str(value)}
        case bytes() | bytearray() | memoryview():
            return {"hex": bytes(value).hex()}
        case datetime():
            if value.tzinfo is None:
                return {"local": value.isoformat()}
            return {"at": value.astimezone(UTC).isoformat()}
        case date():
            return {"date": value.isoformat()}
        case list() | tuple():
            if lists == SQL_LISTS_MAX:
                raise InvalidArgument(
                    f"params: ${number} has lists in lists; the limit is {SQL_LISTS_MAX} levels"
                )
            return [pack_parameter(number, each, lists + 1) for each in value]
    raise InvalidArgument(
        f"params: ${number} is a {type(value).__name__}; a parameter is text, a number, a truth "
        "value, bytes, a time, a list of these, or None"
    )


def pack_parameters(values: Sequence[object]) -> str:
    return json.dumps([pack_parameter(at, each) for at, each in enumerate(values, 1)])
