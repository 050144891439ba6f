"""Filters against SQLite, which evaluates the same text on its own."""

import json
import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from queueber.filters import RecordView, parse_filter

_TEXTS = st.text("ab%_'", max_size=4)
_NUMBERS = st.one_of(st.integers(-3, 3), st.sampled_from([-1.5, 0.5, 2.0, 1e20, 2**53, 2**53 + 1]))
_COLUMNS = {"n": _NUMBERS, "m": _NUMBERS, "s": _TEXTS, "t": _TEXTS}
"""Columns of two kinds: SQLite compares only values of one kind as we do."""


def _quoted(value: object) -> str:
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)


@st.composite
def _comparisons(draw: Any) -> str:
    fields, literals = draw(st.sampled_from([("nm", _NUMBERS), ("st", _TEXTS)]))
    literal = st.one_of(st.just("NULL"), literals.map(_quoted), literals.map(_quoted))
    operand = st.one_of(st.sampled_from(fields), literal)
    left, is_not = draw(st.sampled_from(fields)), draw(st.sampled_from(["", "NOT "]))
    forms = [
        lambda: (
            f"{left} {draw(st.sampled_from(['=', '<>', '!=', '<', '<=', '>', '>=']))} "
            f"{draw(operand)}"
        ),
        lambda: f"{left} {is_not}IN ({', '.join(draw(st.lists(literal, min_size=1, max_size=3)))})",
        lambda: f"{left} {is_not}BETWEEN {draw(operand)} AND {draw(operand)}",
        lambda: f"{left} IS {is_not}NULL",
    ]
    if fields == "st":
        forms.append(lambda: f"{left} {is_not}LIKE {_quoted(draw(_TEXTS))}")
        forms.append(lambda: f"{left} {is_not}LIKE {_quoted(draw(st.text('ab%_', max_size=6)))}")
    text: str = draw(st.sampled_from(forms))()
    return text


_CONDITIONS = st.recursive(
    _comparisons(),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from([" AND ", " OR ", " and ", " Or "]), inner).map("".join),
        inner.map(lambda each: f"NOT ({each})"),
        inner.map(lambda each: f"({each})"),
    ),
    max_leaves=6,
)
_ROWS = st.fixed_dictionaries({}, optional=_COLUMNS)


@pytest.fixture(scope="module")
def sqlite() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:")
    connection.execute("PRAGMA case_sensitive_like = ON")
    yield connection
    connection.close()


def _matches_in_sqlite(sqlite: sqlite3.Connection, condition: str, row: dict[str, Any]) -> bool:
    columns = ", ".join(f"? AS {name}" for name in _COLUMNS)
    values = [row.get(name) for name in _COLUMNS]
    query = f"SELECT count(*) FROM (SELECT {columns}) WHERE {condition}"
    (count,) = sqlite.execute(query, values).fetchone()
    return bool(count)


@settings(deadline=None)
@given(_CONDITIONS, _ROWS)
@example("NOT n IN (1, NULL)", {"n": 2})
@example("s LIKE '%a%b_'", {"s": "aabba"})
def test_filter_matches_what_sqlite_matches(
    sqlite: sqlite3.Connection, condition: str, row: dict[str, Any]
) -> None:
    expected = _matches_in_sqlite(sqlite, condition, row)

    as_contents = RecordView({}, {}, json.dumps(row).encode())
    assert parse_filter(condition).matches(as_contents) is expected
