"""Read: the text of a filter by its grammar, `filter.lark`."""

import math
from functools import cache
from pathlib import Path
from typing import Any

from lark import Lark, Transformer, v_args
from lark.exceptions import UnexpectedEOF, UnexpectedInput, UnexpectedToken

from queueber.filters import conditions
from queueber.filters.conditions import Condition, Term
from queueber.filters.fields import Field, Value, field_of
from queueber.filters.like import Pattern
from queueber.limits import FILTER_PATTERN_CHARS_MAX

GRAMMAR = Path(__file__).with_name("filter.lark")

_SHOWN_CHARS = 40


class Unreadable(Exception):
    """What is wrong with a text, and where."""


def read(rule: str, text: str) -> Any:
    """What a rule of the grammar makes of a text. Raises `Unreadable`."""
    try:
        return _parser().parse(text, start=rule)
    except UnexpectedInput as error:
        raise Unreadable(_wrong(text, error)) from None


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
            raise Unreadable(
                f"a pattern of LIKE has {len(text)} characters; the limit is "
                f"{FILTER_PATTERN_CHARS_MAX}"
            )
        if escape is not None and len(escaped_by) != 1:
            raise Unreadable(f"ESCAPE is {escaped_by!r}; give one character")
        try:
            return _maybe_not(conditions.is_like(term, Pattern(text, escaped_by)), is_not)
        except ValueError as error:
            raise Unreadable(f"{_shown(text)}: {error}") from None

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
        raise Unreadable(f"{_shown(str(digits))} is too large for a number")
    return int(digits) if digits.lstrip("+-").isdigit() else number


class _Nothing:
    """Literals ask nothing of a view."""

    def value(self, field: Field) -> Value:
        raise AssertionError(f"a literal has no field {field}")


_NOTHING = _Nothing()
