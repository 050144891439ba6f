"""Types and values of answers in JSON."""

import asyncio
import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from queueber.gateway.sql.json_values import data_type, encoded_rows
from queueber.model import SqlColumn, StatementResult


@pytest.mark.parametrize(
    ("of_duckdb", "expected"),
    [
        ("BIGINT", "BigInt"),
        ("UINTEGER", "BigInt"),
        ("INTEGER", "Int"),
        ("VARCHAR", "Text"),
        ("BLOB", "Bytes"),
        ("TIMESTAMP_NS", "Timestamp"),
        ("TIMESTAMP WITH TIME ZONE", "DateTime"),
        ("DECIMAL(18,3)", {"Decimal": {"precision": 18, "scale": 3}}),
        ("HUGEINT", {"Decimal": {"precision": 38, "scale": 0}}),
        ("VARCHAR[]", "Json"),
        ("STRUCT(a INTEGER)", "Json"),
        ("MAP(VARCHAR, VARCHAR)", "Json"),
        ("INTERVAL", "Text"),
    ],
)
def test_types_are_those_of_kalamdb(of_duckdb: str, expected: object) -> None:
    assert data_type(of_duckdb) == expected


def test_values_are_what_json_can_have() -> None:
    columns = [
        ("BIGINT", 1 << 60, str(1 << 60)),
        ("INTEGER", 5, 5),
        ("HUGEINT", 1 << 90, str(1 << 90)),
        ("DECIMAL(4,2)", Decimal("1.50"), "1.50"),
        ("DOUBLE", float("nan"), "nan"),
        ("DOUBLE", 0.5, 0.5),
        ("BOOLEAN", True, True),
        ("VARCHAR", "ä\0", "ä\0"),
        ("BLOB", b"\xff\0", "/wA="),
        (
            "TIMESTAMP WITH TIME ZONE",
            datetime(2026, 11, 18, tzinfo=UTC),
            "2026-11-18T00:00:00+00:00",
        ),
        ("DATE", date(2026, 11, 18), "2026-11-18"),
        ("BIGINT[]", [1, 1 << 60, None], [1, str(1 << 60), None]),
        ("MAP(VARCHAR, BLOB)", {"a": b"a"}, {"a": "YQ=="}),
        ("VARCHAR", None, None),
    ]
    named = [SqlColumn(str(at), kind) for at, (kind, _, _) in enumerate(columns)]
    row = [value for _, value, _ in columns]

    encoded = asyncio.run(encoded_rows(StatementResult(named, [row] * 500, 500)))

    assert json.loads(encoded) == [[expected for _, _, expected in columns]] * 500


def test_no_rows_are_an_empty_list() -> None:
    assert asyncio.run(encoded_rows(StatementResult([SqlColumn("a", "BIGINT")]))) == b"[]"
