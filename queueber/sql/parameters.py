"""The parameters of a statement: `$1`, `$2`, … or `?` for one after the other."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from math import isfinite

from lark import Token

from queueber.limits import SQL_CHARS_MAX
from queueber.sql.errors import InvalidParameter

_NUMBER_MAX = (1 << 63) - 1
Given = str | int | float | bool | bytes | datetime | None


class Parameters:
    """The values, and which of them a statement has used."""

    def __init__(self, values: Sequence[object], count_max: int) -> None:
        if len(values) > count_max:
            raise InvalidParameter(f"params: there are {len(values)}; the limit is {count_max}")
        self._values = values
        self._used: set[int] = set()
        self._marks: list[int] = []

    def number_marks(self, tokens: Iterable[Token]) -> None:
        """Each `?` is the next parameter, in the order in which they were written."""
        listed = list(tokens)
        self._marks = sorted(token.start_pos or 0 for token in listed if token == "?")
        if 0 < len(self._marks) < len(listed):
            raise InvalidParameter("params: a statement has either ? or $1, not both")

    def value(self, token: Token) -> object:
        """The value of a placeholder, as it was given."""
        place = token.start_pos or 0
        index = self._marks.index(place) + 1 if token == "?" else int(token[1:])
        if index > len(self._values):
            raise InvalidParameter(
                f"params: line {token.line}, column {token.column} needs parameter {index}, and "
                f"{len(self._values)} were given"
            )
        self._used.add(index)
        value = self._values[index - 1]
        _check(index, value)
        return value

    def text(self, token: Token) -> str:
        value = self.value(token)
        if not isinstance(value, str):
            raise InvalidParameter(_wrong(token, value, "a text"))
        return value

    def number(self, token: Token) -> int:
        value = self.value(token)
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # JSON has one kind of number
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _NUMBER_MAX:
            raise InvalidParameter(_wrong(token, value, "a whole number from 0 to 2^63 - 1"))
        return value

    def literal(self, token: Token) -> str:
        """The value as it is written in a condition."""
        value = self.value(token)
        match value:
            case None:
                return "NULL"
            case bool():
                return "TRUE" if value else "FALSE"
            case int():
                return str(value)
            case float() if isfinite(value):
                return f"{value:f}".rstrip("0").rstrip(".") or "0"
            case str():
                return "'" + value.replace("'", "''") + "'"
        raise InvalidParameter(_wrong(token, value, "a text, a number, true, false or null"))

    def check_all_used(self) -> None:
        unused = [at for at in range(1, len(self._values) + 1) if at not in self._used]
        if unused:
            raise InvalidParameter(f"params: the statement does not use parameter {unused[0]}")


def _check(index: int, value: object) -> None:
    if value is not None and not isinstance(value, str | int | float | bytes | datetime):
        raise InvalidParameter(
            f"params: parameter {index} is of type {type(value).__name__}; give a text, a number, "
            "true, false, null, bytes or a time"
        )
    if isinstance(value, str | bytes) and len(value) > SQL_CHARS_MAX:
        raise InvalidParameter(
            f"params: parameter {index} has a length of {len(value)}; the limit is {SQL_CHARS_MAX}"
        )
    if isinstance(value, int) and not -_NUMBER_MAX - 1 <= value <= _NUMBER_MAX:
        raise InvalidParameter(f"params: parameter {index} does not fit into 64 bits")


def _wrong(token: Token, value: object, wanted: str) -> str:
    shown = repr(value)
    shown = shown if len(shown) < 100 else f"{shown[:100]}…"
    return f"params: {shown} for {token} (line {token.line}, column {token.column}) is not {wanted}"
