"""The headers of requests, checked: what a stream is created with, and what goes with an append."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from queueber.gateway.problems import invalid, of_http
from queueber.gateway.streams.paths import source_path
from queueber.gateway.streams.tokens import Place, to_offset
from queueber.limits import CONTENT_TYPE_BYTES_MAX

Headers = Mapping[bytes, bytes]

_NUMBER_MAX = 2**53 - 1
"""The largest number that every program, JavaScript among them, has exactly."""
_WHOLE = re.compile(r"0|[1-9][0-9]{0,15}")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ONE_MS = timedelta(milliseconds=1)
TIME_MS_MAX = 253_402_300_799_999
"""The end of the year 9999, the last time that can be written."""
_PRODUCER = (b"producer-id", b"producer-epoch", b"producer-seq")


@dataclass(frozen=True, slots=True)
class ProducerHeaders:
    """Who appends: requests of one producer and epoch are numbered from 0 on."""

    id: str
    epoch: int
    number: int


@dataclass(frozen=True, slots=True)
class Expiry:
    """When a stream ends; all None: never."""

    ttl_seconds: int | None = None
    at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class ForkHeaders:
    source: str
    at: Place | None
    """None: behind what the source has now."""
    further: int
    """So many bytes, or values of JSON, behind that."""


def text_of(headers: Headers, name: bytes) -> str | None:
    """A header as text, which is UTF-8 or Latin-1; None: the request has none."""
    given = headers.get(name)
    if given is None:
        return None
    try:
        return given.decode()
    except UnicodeDecodeError:
        return given.decode("latin-1")


def closes(headers: Headers) -> bool:
    """Only `true` counts; anything else is as good as no header."""
    return headers.get(b"stream-closed", b"").strip().lower() == b"true"


def content_type(headers: Headers) -> str:
    """The type as it was given; "" if it was not."""
    text = (text_of(headers, b"content-type") or "").strip()
    if len(text.encode()) > CONTENT_TYPE_BYTES_MAX:
        raise invalid(
            f"content-type: it has {len(text)} characters; the limit is {CONTENT_TYPE_BYTES_MAX}"
        )
    return text


def check_encoding(headers: Headers) -> None:
    """Refuse a body that is compressed: its bytes are kept as they are, and readers would not be
    told how to read them."""
    encoding = headers.get(b"content-encoding", b"").strip().lower()
    if encoding not in (b"", b"identity"):
        shown = encoding[:50].decode("latin-1")
        raise of_http(415, f"content-encoding: {shown} is not possible; send the bytes themselves")


def producer_of(headers: Headers) -> ProducerHeaders | None:
    """The producer of an append, if it has one: all three headers, or none."""
    given = [text_of(headers, name) for name in _PRODUCER]
    if given == [None, None, None]:
        return None
    producer, epoch, number = given
    if not producer or epoch is None or number is None:
        raise invalid(
            "producer-id: give it with Producer-Epoch and Producer-Seq, or none of the three"
        )
    return ProducerHeaders(
        producer, _number("producer-epoch", epoch), _number("producer-seq", number)
    )


def _number(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > 16 or int(text) > _NUMBER_MAX:
        raise invalid(f"{name}: {text[:50]!r} is no number from 0 to {_NUMBER_MAX}")
    return int(text)


def expiry_of(headers: Headers) -> Expiry:
    ttl, at = text_of(headers, b"stream-ttl"), text_of(headers, b"stream-expires-at")
    if ttl is not None and at is not None:
        raise invalid("stream-expires-at: Stream-TTL was given, too; give one of the two")
    if ttl is not None:
        if not _WHOLE.fullmatch(ttl):
            raise invalid(f"stream-ttl: {ttl[:50]!r} is no whole number of seconds")
        return Expiry(ttl_seconds=int(ttl))
    return Expiry() if at is None else Expiry(at_ms=_time_ms(at))


def _time_ms(text: str) -> int:
    try:
        if not _TIME.fullmatch(text):
            raise ValueError
        at = datetime.fromisoformat(text.upper())
    except ValueError:
        raise invalid(
            f"stream-expires-at: {text[:50]!r} is no time such as 2030-01-31T12:00:00Z"
        ) from None
    # Long ago is 1: to the server 0 is no time at all.
    return min(max(1, (at - EPOCH) // ONE_MS), TIME_MS_MAX)


def fork_of(headers: Headers) -> ForkHeaders | None:
    """What the new stream is a fork of; None: of nothing."""
    source = text_of(headers, b"stream-forked-from")
    at, further = text_of(headers, b"stream-fork-offset"), _further(headers)
    if source is None:
        if at is not None or further is not None:
            raise invalid("stream-fork-offset: it needs Stream-Forked-From")
        return None
    if further and at is None:
        raise invalid("stream-fork-sub-offset: it needs Stream-Fork-Offset")
    place = None if at is None else to_offset("stream-fork-offset", at)
    return ForkHeaders(source_path(source), place, further or 0)


def _further(headers: Headers) -> int | None:
    text = text_of(headers, b"stream-fork-sub-offset")
    if text is not None and not _WHOLE.fullmatch(text):
        raise invalid(f"stream-fork-sub-offset: {text[:50]!r} is no whole number")
    return None if text is None else int(text)


def wanted_offset(headers: Headers) -> Place | None:
    """The offset that an append must get (`If-Match`); None: whichever comes."""
    text = text_of(headers, b"if-match")
    if text is None or text.strip() == "*":
        return None
    return to_offset("if-match", text.strip().strip('"'))
