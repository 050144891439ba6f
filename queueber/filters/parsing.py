"""Parse: a filter's text to conditions, once. The grammar is `filter.lark`."""

import math
from functools import cache
from pathlib import Path
from typing import Any

from lark import Lark, Transformer, v_args
from lark.exceptions import UnexpectedEOF, UnexpectedInput, UnexpectedToken

from queueber.errors import InvalidArgument
from queueber.filters import conditions
from queueber.filters.conditions import Condition, Term
from queueber.filters.fields import Field, Room, Value, View, field_of
from queueber.filters.like import Pattern
from queueber.limits import (
    FILTER_CHARS_MAX,
    FILTER_DEPTH_MAX,
    FILTER_FIELDS_MAX,
    FILTER_PATTERN_CHARS_MAX,
)

GRAMMAR = Path(__file__).with_name("filter.lark")

_SHOWN_CHARS = 40


class Filter:
    """A parsed condition."""

    __slots__ = ("_holds", "fields", "text")

    def __init__(self, text: str, condition: Condition) -> None:
        self.text = text
        self.fields = condition.fields
        """The fields that it asks for."""
        self._holds = condition.holds

    def matches(self, view: View) -> bool:
        """Whether the condition is true; what is unknown is not."""
        return self._holds(view) is True

    @property
    def reads_contents(self) -> bool:
        return any(each.room is Room.CONTENTS for each in self.fields)


def parse_filter(text: str, argument: str = "where") -> Filter:
    """Raises `InvalidArgument`, which says where the text is wrong; `argument` is what it names."""
    condition: Condition = _parse("condition", text, argument)
    if condition.depth > FILTER_DEPTH_MAX:
        raise InvalidArgument(
            f"{argument}: conditions are nested {condition.depth} deep; the limit is "
            f"{FILTER_DEPTH_MAX}"
        )
    return Filter(text, condition)


def parse_fields(text: str, argument: str = "partition_by") -> tuple[Field, ...]:
    """The fields of a list with commas, with or without parentheses around it."""
    fields: tuple[Field, ...] = _parse("fields", text, argument)
    if len(fields) > FILTER_FIELDS_MAX:
        raise InvalidArgument(
            f"{argument} has {len(fields)} fields; the limit is {FILTER_FIELDS_MAX}"
        )
    return fields


def _parse(rule: str, text: str, argument: str) -> Any:
    if len(text) > FILTER_CHARS_MAX:
        raise InvalidArgument(
            f"{argument} has {len(text)} characters; the limit is {FILTER_CHARS_MAX}"
        )
    try:
        return _parser().parse(text, start=rule)
    except UnexpectedInput as error:
        raise InvalidArgument(f"{argument}: {_wrong(text, error)}") from None
    except _BadLiteral as error:
        raise InvalidArgument(f"{argument}: {error}") from None


@cache
def _parser() -> Lark:
    # A condition is built while it is parsed: there is no tree, and no recursion over one.
    return Lark(
        GRAMMAR.read_text(encoding="utf-8"),
        parser="lalr",
        start=["condition", "fields"],
        transformer=_Builder(),
        maybe_placeholders=True,
    )


def _wrong(text: str, error: UnexpectedInput) -> str:
    is_at_end = isinstance(error, UnexpectedEOF) or (
        isinstance(error, UnexpectedToken) and error.token.type == "$END"
    )
    if is_at_end:
        return f"{_shown(text)} ends too early" if text.strip() else "it is empty"
    at: int = getattr(error, "pos_in_stream", None) or 0
    return f"character {at + 1} is not expected: {_shown(text[at:])}"


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "...")


class _BadLiteral(Exception):
    """A number or a pattern that the grammar cannot refuse."""


@v_args(inline=True)
class _Builder(Transformer[Any, Any]):
    """One method for each rule of the grammar."""

    def condition(self, *parts: Condition) -> Condition:
        return parts[0] if len(parts) == 1 else conditions.any_of(parts)

    def conjunction(self, *parts: Condition) -> Condition:
        return parts[0] if len(parts) == 1 else conditions.all_of(parts)

    def negated(self, condition: Condition) -> Condition:
        return conditions.negated(condition)

    def comparison(self, left: Term, sign: str, right: Term) -> Condition:
        return conditions.comparison(left, str(sign), right)

    def is_in(self, term: Term, is_not: object, *literals: Term) -> Condition:
        values = [each.value(_NOTHING) for each in literals]
        return _maybe_not(conditions.is_in(term, values), is_not)

    def is_between(self, term: Term, is_not: object, low: Term, high: Term) -> Condition:
        return _maybe_not(conditions.is_between(term, low, high), is_not)

    def is_like(self, term: Term, is_not: object, pattern: str, escape: str | None) -> Condition:
        text, escaped_by = _text(pattern), "" if escape is None else _text(escape)
        if len(text) > FILTER_PATTERN_CHARS_MAX:
            raise _BadLiteral(
                f"a pattern of LIKE has {len(text)} characters; the limit is "
                f"{FILTER_PATTERN_CHARS_MAX}"
            )
        if escape is not None and len(escaped_by) != 1:
            raise _BadLiteral(f"ESCAPE is {escaped_by!r}; give one character")
        try:
            return _maybe_not(conditions.is_like(term, Pattern(text, escaped_by)), is_not)
        except ValueError as error:
            raise _BadLiteral(f"{_shown(text)}: {error}") from None

    def is_null(self, term: Term, is_not: object) -> Condition:
        return _maybe_not(conditions.is_null(term), is_not)

    def is_true(self, term: Term) -> Condition:
        return conditions.is_true(term)

    def fields(self, *terms: Term) -> tuple[Field, ...]:
        return tuple(field for term in terms for field in term.fields)

    def field(self, *names: str) -> Term:
        return conditions.field_term(field_of([_name(each) for each in names]))

    def number(self, digits: str) -> Term:
        return conditions.literal_term(_number(digits))

    def string(self, quoted: str) -> Term:
        return conditions.literal_term(_text(quoted))

    def true(self) -> Term:
        return conditions.literal_term(True)

    def false(self) -> Term:
        return conditions.literal_term(False)

    def null(self) -> Term:
        return conditions.literal_term(None)


def _maybe_not(condition: Condition, is_not: object) -> Condition:
    return condition if is_not is None else conditions.negated(condition)


def _text(quoted: str) -> str:
    return quoted[1:-1].replace("''", "'")


def _name(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else str(name)


def _number(digits: str) -> int | float:
    number = float(digits)
    if not math.isfinite(number):
        raise _BadLiteral(f"{_shown(str(digits))} is too large for a number")
    return int(digits) if digits.lstrip("+-").isdigit() else number


class _Nothing:
    """Literals ask nothing of a view."""

    def value(self, field: Field) -> Value:
        raise AssertionError(f"a literal has no field {field}")


_NOTHING = _Nothing()
