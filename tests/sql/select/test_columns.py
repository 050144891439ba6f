"""docs/sql-select.md has the tables, columns and limits of the code; the engine has their types."""

import re

import pytest

import queueber
from queueber import limits
from queueber.limits import KIB, MIB
from queueber.sql.select.columns import NAMED, SYSTEM, TABLES, sql_type
from queueber.sql.select.engine.wanted import _EQUAL, _RANGES
from tests.sql.select.conftest import Run
from tests.test_docs import section, table

PAGE = "sql-select.md"
HEADINGS = {"queue": "### queue and dead"} | {
    name: f"### {name}" for name in TABLES if name not in {"queue", "dead", "system.dead_letters"}
}


def test_page_lists_every_table() -> None:
    listed = re.findall(r"^\| `([a-z_.]+)(?:\('name'\))?` \|", section(PAGE, "## Tables"), re.M)

    assert set(TABLES) <= set(listed)
    assert TABLES["dead"] == TABLES["queue"]
    assert SYSTEM["system.dead_letters"].names == [
        *("queue", "topic", "group_id"),
        *TABLES["queue"].names,
    ]


@pytest.mark.parametrize("name", HEADINGS)
def test_page_lists_the_columns_of_the_code(name: str) -> None:
    listed = table(PAGE, HEADINGS[name])

    assert [row[:2] for row in listed] == [[f.name, sql_type(f)] for f in TABLES[name]]


def test_page_lists_the_conditions_that_let_less_be_read() -> None:
    listed: dict[str, set[str]] = {}
    for names, _, columns in table(PAGE, "## What is read"):
        for name in re.findall(r"[a-z_.]+", names):
            listed.setdefault(name, set()).update(re.findall(r"`?([a-z_]+)`?", columns))
    words = {"if", "it", "is", "one"}

    assert {name: columns - words for name, columns in listed.items()} == {
        name: _EQUAL[name] | _RANGES.get(name, set()) for name in _EQUAL
    }


def test_page_lists_the_limits_of_the_code() -> None:
    assert [row[1] for row in table(PAGE, "## Limits")] == [
        f"{limits.SELECT_TEXT_BYTES_MAX // KIB} KiB",
        str(limits.SELECT_TABLES_MAX),
        f"{limits.SELECT_TABLE_ROWS_MAX:,}",
        f"{limits.SELECT_TABLE_BYTES_MAX // MIB} MiB",
        f"{limits.SELECT_ROWS_MAX:,}",
        f"{limits.SELECT_ANSWER_BYTES_MAX // MIB} MiB",
        f"{limits.SELECT_SECONDS} s",
        f"{limits.SELECT_MEMORY_BYTES // MIB} MiB",
        str(limits.SELECTS_MAX),
        str(limits.SELECT_WAITS_MAX),
    ]


@pytest.mark.parametrize("name", TABLES)
def test_columns_have_their_types_in_an_answer(
    client: queueber.Client, run: Run, name: str
) -> None:
    if name in NAMED:
        client.topic("types").publish([b"1"])
        client.queue("types").stats()
    source = f"{name}('types')" if name in NAMED else name

    found = run(f"SELECT * FROM {source} LIMIT 0")

    assert [(c.name, c.type) for c in found.columns] == [
        (field.name, sql_type(field)) for field in TABLES[name]
    ]
