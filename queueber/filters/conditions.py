"""Conditions with SQL's three values: true, false, and unknown.

A comparison is unknown if one side has no value, or if the two are of different kinds: a text is
neither equal nor unequal to a number. What is unknown does not match, and neither does its NOT.
"""

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from queueber.filters.fields import Field, Operand, Value, View
from queueber.filters.like import Pattern

Truth = bool | None
"""None: unknown."""

Holds = Callable[[View], Truth]

_KINDS: dict[type, str] = {str: "text", int: "number", float: "number", bool: "truth value"}

_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Condition(NamedTuple):
    holds: Holds
    fields: frozenset[Field]
    depth: int = 1
    """How deep conditions are nested in it."""


class Term(NamedTuple):
    """One side of a comparison."""

    value: Operand
    fields: frozenset[Field] = frozenset()


def field_term(field: Field) -> Term:
    return Term(lambda view: view.value(field), frozenset((field,)))


def literal_term(literal: Value) -> Term:
    return Term(lambda _: literal)


def all_of(parts: Sequence[Condition]) -> Condition:
    checks = [each.holds for each in parts]

    def holds(view: View) -> Truth:
        found: Truth = True
        for check in checks:
            each = check(view)
            if each is False:
                return False
            if each is None:
                found = None
        return found

    return _joined(holds, parts)


def any_of(parts: Sequence[Condition]) -> Condition:
    checks = [each.holds for each in parts]

    def holds(view: View) -> Truth:
        found: Truth = False
        for check in checks:
            each = check(view)
            if each is True:
                return True
            if each is None:
                found = None
        return found

    return _joined(holds, parts)


def _joined(holds: Holds, parts: Sequence[Condition]) -> Condition:
    fields = frozenset[Field]().union(*[each.fields for each in parts])
    return Condition(holds, fields, 1 + max(each.depth for each in parts))


def negated(condition: Condition) -> Condition:
    check = condition.holds

    def holds(view: View) -> Truth:
        found = check(view)
        return None if found is None else not found

    return Condition(holds, condition.fields, 1 + condition.depth)


def comparison(left: Term, sign: str, right: Term) -> Condition:
    compare, a_of, b_of = _OPERATORS[sign], left.value, right.value

    def holds(view: View) -> Truth:
        a, b = a_of(view), b_of(view)
        kind = _KINDS.get(type(a))
        if kind is None or kind is not _KINDS.get(type(b)):
            return None
        return compare(a, b)

    return Condition(holds, left.fields | right.fields)


def is_in(term: Term, literals: Sequence[Value]) -> Condition:
    """As `term = a OR term = b ...`: unknown if none is equal and one comparison is unknown."""
    known = {(_KINDS[type(each)], each) for each in literals if each is not None}
    kinds = {_KINDS.get(type(each)) for each in literals}
    value_of = term.value

    def holds(view: View) -> Truth:
        value = value_of(view)
        kind = _KINDS.get(type(value))
        if kind is None:
            return None
        if (kind, value) in known:
            return True
        return False if kinds == {kind} else None

    return Condition(holds, term.fields)


def is_between(term: Term, low: Term, high: Term) -> Condition:
    return all_of([comparison(term, ">=", low), comparison(term, "<=", high)])


def is_like(term: Term, pattern: Pattern) -> Condition:
    value_of = term.value

    def holds(view: View) -> Truth:
        value = value_of(view)
        return pattern.matches(value) if isinstance(value, str) else None

    return Condition(holds, term.fields)


def is_null(term: Term) -> Condition:
    value_of = term.value
    return Condition(lambda view: value_of(view) is None, term.fields)


def is_true(term: Term) -> Condition:
    """A field alone: true if its value is the truth value."""
    return comparison(term, "=", literal_term(True))
