"""Schemas as they are compiled, and what they say of messages."""

import json
from typing import Any

import pytest

from queueber.gateway.problems import Problem
from queueber.gateway.streams.extensions.schemas.compiled import (
    CompiledSchema,
    Misfit,
    decode_schema,
)
from queueber.gateway.streams.extensions.schemas.nesting import NESTING_MAX, check_nesting


def misfit(schema: Any, value: Any) -> str | None:
    try:
        CompiledSchema(schema).check(json.dumps(value).encode(), value)
    except Misfit as found:
        return str(found)
    return None


@pytest.mark.parametrize(
    ("schema", "value", "text"),
    [
        ({"type": "object", "required": ["a"]}, {"a": 1}, None),
        ({"type": "object", "required": ["a"]}, {}, '"a" is a required property'),
        ({"properties": {"a": {"items": {"type": "integer"}}}}, {"a": [1, "x"]},
         '/a/1: the value is not of type "integer"'),
        ({"format": "date-time"}, "2026-01-01T00:00:00Z", None),
        ({"format": "date-time"}, "yesterday", 'the value is not a "date-time"'),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]},
         [1], '/0: the value is not of type "string"'),
        (False, 1, "False schema does not allow the value"),
        (True, 1, None),
    ],
)  # fmt: skip
def test_a_message_fits_or_it_is_said_where_not(schema: Any, value: Any, text: str | None) -> None:
    assert misfit(schema, value) == text


def test_no_message_takes_too_long() -> None:
    schema = {"items": {"anyOf": [{"pattern": f"a{at}$"} for at in range(300)]}}

    text = misfit(schema, ["a"] * 100_000)

    assert text is not None
    assert "checking them takes too long" in text


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"pattern": "(?=a)b"}, "/pattern"),
        ({"pattern": r"(a)\1"}, "/pattern"),
        ({"pattern": "((a{100}){100}){100}"}, "/pattern"),
        ({"type": "text"}, "/type"),
        ({"$schema": "http://example.com/"}, "$schema is 'http://example.com/'"),
        (3, "is an object, or true or false"),
    ],
)
def test_what_is_no_schema_is_refused(schema: Any, text: str) -> None:
    with pytest.raises(Problem) as refused:
        CompiledSchema(schema)

    assert (refused.value.status, refused.value.code) == (400, "INVALID_ARGUMENT")
    assert text in refused.value.detail


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"{", 400), (b"[" * 60_000, 400), (b'"' + b"x" * 70_000 + b'"', 413),
     (b'{"not":' * 70 + b"{}" + b"}" * 70, 400)],
)  # fmt: skip
def test_a_schema_has_limits_of_its_own(body: bytes, status: int) -> None:
    with pytest.raises(Problem) as refused:
        decode_schema(body)

    assert refused.value.status == status


@pytest.mark.parametrize("more", [0, 1])
def test_a_value_may_be_nested_so_deeply_and_no_deeper(more: int) -> None:
    depth = NESTING_MAX + more
    payload = b"[" * depth + b"]" * depth
    wide = json.dumps([[]] * 1000).encode()

    check_nesting(wide, json.loads(wide), "body")
    if not more:
        check_nesting(payload, json.loads(payload), "body")
        return
    with pytest.raises(Problem) as refused:
        check_nesting(payload, json.loads(payload), "body")
    assert refused.value.detail == "body: it is nested too deeply; the limit is 64"
