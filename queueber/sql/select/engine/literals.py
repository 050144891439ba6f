"""Values as literals of SQL: parameters, and the time of the statement."""

from datetime import UTC, datetime
from decimal import Decimal

from sqlglot import exp

from queueber.errors import InvalidArgument

_TYPES = {"float": "DOUBLE", "local": "TIMESTAMP", "at": "TIMESTAMPTZ", "date": "DATE"}
"""Values that come as text of their type."""


def literal(number: int, packed: object) -> exp.Expr:
    """What `pack_parameter` made of parameter `number`."""
    match packed:
        case None:
            return exp.null()
        case bool():
            return exp.Boolean(this=packed)
        case str():
            if "\0" in packed:
                raise InvalidArgument(f"params: ${number} has a NUL character in it")
            return exp.Literal.string(packed)
        case list():
            return exp.Array(expressions=[literal(number, each) for each in packed])
        case dict():
            ((kind, text),) = packed.items()
            return _typed(number, kind, text)
    raise InvalidArgument(f"params: ${number} cannot be read")


def time_literal(at_us: int) -> exp.Expr:
    at = datetime.fromtimestamp(at_us / 1_000_000, UTC)
    return exp.cast(exp.Literal.string(at.isoformat()), "TIMESTAMPTZ")


def _typed(number: int, kind: str, text: str) -> exp.Expr:
    if kind == "int":
        digits = exp.Literal.number(text.removeprefix("-"))
        return exp.paren(exp.Neg(this=digits), copy=False) if text[0] == "-" else digits
    if kind == "decimal":
        return exp.cast(exp.Literal.string(text), _decimal_type(number, Decimal(text)))
    if kind == "hex":
        escaped = "".join(f"\\x{text[at : at + 2]}" for at in range(0, len(text), 2))
        return exp.cast(exp.Literal.string(escaped), "BLOB")
    return exp.cast(exp.Literal.string(text), _TYPES[kind])


def _decimal_type(number: int, value: Decimal) -> str:
    _, digits, exponent = value.as_tuple()
    scale = max(0, -int(exponent))
    width = max(len(digits) + max(0, int(exponent)), scale + 1)
    if width > 38:
        raise InvalidArgument(f"params: ${number} has {width} digits; the limit is 38")
    return f"DECIMAL({width}, {scale})"
