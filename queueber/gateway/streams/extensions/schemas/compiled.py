"""JSON Schemas, checked and compiled: no fetches, linear patterns, work that has a bound."""

from typing import Any

import jsonschema_rs
import msgspec

from queueber.gateway.problems import Problem, invalid
from queueber.gateway.streams.extensions.schemas.cost import cost_of
from queueber.gateway.streams.extensions.schemas.nesting import check_nesting
from queueber.limits import KIB

BODY_BYTES_MAX = 64 * KIB
PATTERN_BYTES_MAX = 64 * KIB
"""What a pattern may need when it is compiled."""
WORK_MAX = 20_000_000
"""Checks that one message may need: about half a second."""
_SHOWN_MAX = 300
_BYTES_A_VALUE = 64
"""Long strings are looked at by patterns: so many bytes count as one more value."""

_DRAFTS: dict[str, type[jsonschema_rs.Validator]] = {
    "https://json-schema.org/draft/2020-12/schema": jsonschema_rs.Draft202012Validator,
    "http://json-schema.org/draft-07/schema": jsonschema_rs.Draft7Validator,
}


class Misfit(Exception):
    """A message does not fit a schema."""


class CompiledSchema:
    """A schema that messages are checked against."""

    def __init__(self, schema: object) -> None:
        """Raises a `Problem` if it is no schema, or one without a bound."""
        if not isinstance(schema, dict | bool):
            raise invalid("schema: a JSON Schema is an object, or true or false")
        self.schema: dict[str, Any] | bool = schema
        self.cost = cost_of(schema)
        self._validator = _compile(schema)

    def check(self, payload: bytes, value: object) -> None:
        """Raises `Misfit` with what is wrong where; `payload` is the JSON of the value."""
        if _values(payload) * self.cost > WORK_MAX:
            raise Misfit(
                f"it has {len(payload)} bytes, and checking them takes too long; send smaller "
                "messages"
            )
        if self._validator.is_valid(value):
            return
        try:
            self._validator.validate(value)
        except jsonschema_rs.ValidationError as error:
            place = "".join(f"/{each}" for each in error.instance_path)[:_SHOWN_MAX]
            text = f"{place}: {error.message}" if place else error.message
            raise Misfit(text[: 2 * _SHOWN_MAX]) from None


def _values(payload: bytes) -> int:
    """At least as many values as the JSON has."""
    marks = payload.count(b",") + payload.count(b"[") + payload.count(b"{") + payload.count(b":")
    return 1 + marks + len(payload) // _BYTES_A_VALUE


def decode_schema(body: bytes) -> object:
    """The JSON of a schema, which has limits of its own."""
    if len(body) > BODY_BYTES_MAX:
        detail = f"body: a schema may have {BODY_BYTES_MAX} bytes, this has {len(body)}"
        raise Problem(413, "RESOURCE_EXHAUSTED", detail)
    value = decode_json(body, "body")
    check_nesting(body, value, "schema")
    return value


def decode_json(payload: bytes, what: str) -> object:
    try:
        return msgspec.json.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise invalid(f"{what}: it is not JSON: {error}") from None
    except RecursionError:
        raise invalid(f"{what}: it is nested too deeply") from None


def _compile(schema: dict[str, Any] | bool) -> jsonschema_rs.Validator:
    named = schema.get("$schema") if isinstance(schema, dict) else None
    draft = _DRAFTS.get(str(named).rstrip("#")) if named else jsonschema_rs.Draft202012Validator
    if draft is None:
        raise invalid(f"schema: $schema is {str(named)[:100]!r}; possible are {', '.join(_DRAFTS)}")
    try:
        return draft(
            schema,
            validate_formats=True,
            pattern_options=jsonschema_rs.RegexOptions(
                size_limit=PATTERN_BYTES_MAX, dfa_size_limit=16 * PATTERN_BYTES_MAX
            ),
            mask="the value",
            offline=True,
        )
    except jsonschema_rs.ValidationError as error:
        place = "".join(f"/{each}" for each in error.instance_path)[:_SHOWN_MAX]
        raise invalid(f"schema: {place or '/'}: {error.message[:_SHOWN_MAX]}") from None
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        raise invalid(f"schema: {str(error)[:_SHOWN_MAX]}") from None
