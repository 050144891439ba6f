"""Requests to structs and structs to JSON. Contents are base64, ids and leases hexadecimal."""

from collections.abc import Mapping
from functools import cache
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from starlette.types import Receive

from queueber.gateway.bounds import Bounds
from queueber.gateway.problems import Problem, invalid, of_http
from queueber.gateway.routes import Route
from queueber.limits import KIB

JSON_TYPE = "application/json"
RAW_TYPE = "application/octet-stream"
_QUERY_FIELDS_MAX = 50
_LOOSE_BYTES_MAX = 64 * KIB
"""A body in which 5.0 may stand for 5: it is read as any JSON, which takes 100 times its size."""

encode = msgspec.json.Encoder().encode


class HungUp(Exception):
    """The caller has closed the connection; nobody gets an answer."""


# --- bodies ---------------------------------------------------------------------------------------


async def read_body(
    receive: Receive, headers: Mapping[bytes, bytes], bounds: Bounds, bytes_max: int
) -> bytes:
    """The whole body, if it is not too large and there is room for it."""
    announced = _announced(headers, bytes_max)
    if not announced and b"transfer-encoding" not in headers:
        return b""
    taken = announced
    bounds.bodies.take(taken)
    try:
        message = await receive()
        if not message.get("more_body") and message["type"] == "http.request":
            return bytes(message["body"])
        parts, size = [], 0
        while True:
            if message["type"] == "http.disconnect":
                raise HungUp
            parts.append(message["body"])
            size += len(message["body"])
            if size > bytes_max:
                raise _too_large(size, bytes_max)
            if size > taken:
                bounds.bodies.take(size - taken)
                taken = size
            if not message.get("more_body"):
                return b"".join(parts)
            message = await receive()
    finally:
        bounds.bodies.give_back(taken)


def _announced(headers: Mapping[bytes, bytes], bytes_max: int) -> int:
    text = headers.get(b"content-length", b"0")
    if not text.isdigit():
        raise invalid(f"content-length: {text[:50]!r} is not a number")
    if int(text) > bytes_max:
        raise _too_large(int(text), bytes_max)
    return int(text)


def _too_large(size: int, bytes_max: int) -> Problem:
    detail = f"body: it has {size} bytes or more; the limit is {bytes_max}, send several requests"
    # The rest of the body is not read, so the connection cannot be used again.
    return Problem(413, "RESOURCE_EXHAUSTED", detail, {"connection": "close"})


def media_type(headers: Mapping[bytes, bytes]) -> str:
    """The media type of the body, without its parameters; empty if the caller names none."""
    named = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    return named.decode("latin-1")


def decode_body(route: Route, kind: str, body: bytes) -> Any:
    """The struct of a request with JSON."""
    if route.body is None:
        if body:
            raise invalid("body: this request has none")
        return None
    if not body:
        # A request whose fields all have defaults may be sent without a body.
        body = b"{}"
    elif kind != JSON_TYPE:
        raise _unsupported(route, kind)
    try:
        try:
            return _decoder(route.body).decode(body)
        except msgspec.ValidationError:
            if len(body) > _LOOSE_BYTES_MAX:
                raise
            # JSON has one kind of number: 5.0 is 5. That is seldom sent, so it may cost more.
            return msgspec.convert(_with_integers(msgspec.json.decode(body)), route.body)
    except msgspec.ValidationError as error:
        raise invalid(f"body: {_located(str(error))}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise invalid(f"body: it is not JSON: {error}") from None
    except RecursionError:
        raise invalid("body: it is nested too deeply") from None


def _with_integers(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_with_integers(each) for each in value]
    if isinstance(value, dict):
        return {name: _with_integers(each) for name, each in value.items()}
    return value


def _unsupported(route: Route, kind: str) -> Problem:
    taken = f"{JSON_TYPE} or {RAW_TYPE}" if route.raw_headers else JSON_TYPE
    given = f"{kind!r} is not" if kind else "none is"
    return of_http(415, f"content-type: {given} possible here; send {taken}", accept=taken)


@cache
def _decoder(struct: type[msgspec.Struct]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(struct)


def _located(text: str) -> str:
    """`items[0].key: Expected str, got int`, with the place first, as elsewhere."""
    sentence, _, place = text.partition(" - at `$")
    place = place.rstrip("`").lstrip(".")
    return f"{place}: {sentence}" if place else sentence


# --- queries and headers --------------------------------------------------------------------------


def decode_query(route: Route, query_string: bytes) -> Any:
    """The struct of the query parameters, each of which may be given once."""
    if not query_string:
        pairs: list[tuple[str, str]] = []
    else:
        try:
            pairs = parse_qsl(
                query_string.decode("ascii"),
                keep_blank_values=True,
                strict_parsing=False,
                errors="strict",
                max_num_fields=_QUERY_FIELDS_MAX,
            )
        except (ValueError, UnicodeDecodeError) as error:
            raise invalid(f"query: it cannot be read: {error}") from None
    given = dict(pairs)
    if len(given) != len(pairs):
        raise invalid("query: a parameter is given twice")
    return _converted(given, route.query, "query")


def decode_headers(struct: type[msgspec.Struct], headers: Mapping[bytes, bytes]) -> Any:
    """The struct of the headers that go with raw bytes: `Queueber-Key` is `key`."""
    given = {}
    for name, value in headers.items():
        if name.startswith(b"queueber-"):
            field = name[len("queueber-") :].decode("latin-1").replace("-", "_")
            given[field] = value.decode("latin-1")
    return _converted(given, struct, "headers")


def _converted(given: dict[str, str], struct: type[msgspec.Struct], what: str) -> Any:
    try:
        return msgspec.convert(given, struct, strict=False)
    except msgspec.ValidationError as error:
        raise invalid(f"{what}: {_located(str(error))}") from None
