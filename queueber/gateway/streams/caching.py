"""What caches are told: tags, ages, and cursors that keep live readers apart from old answers."""

import random
from collections.abc import Mapping

from queueber.clock import SystemClock
from queueber.gateway.settings import GatewaySettings

_CURSOR_MS = 20_000
_CURSOR_BEGIN_MS = 1_728_432_000_000
"""2024-10-09: cursors count intervals of 20 seconds since."""
_JITTER_SECONDS_MAX = 3600
_CURSOR_DIGITS_MAX = 15

NO_STORE = b"no-store"
NO_CACHE = b"no-cache"
"""It may be kept, and must be asked for again with its tag before it is used."""

_clock = SystemClock()


def entity_tag(number: int, start: int, end: int, *, is_closed: bool, is_up_to_date: bool) -> bytes:
    """Of the bytes between two offsets of one topic; that it is closed, or has more, is a change:
    headers say so, and a cache keeps those that came with the bytes."""
    mark = b"-closed" if is_closed else b"" if is_up_to_date else b"-more"
    return b'"%x-%d-%d%b"' % (number, start, end, mark)


def is_known(headers: Mapping[bytes, bytes], tag: bytes) -> bool:
    """Whether the caller has what it asks for."""
    given = headers.get(b"if-none-match")
    if given is None:
        return False
    tags = [each.strip().removeprefix(b"W/") for each in given.split(b",")]
    return tag in tags or given.strip() == b"*"


def for_good(headers: Mapping[bytes, bytes], settings: GatewaySettings) -> bytes:
    """For bytes that never change, asked for by an offset that no other stream has."""
    return b"%b, max-age=31536000, immutable" % _whose(headers, settings)


def for_a_minute(headers: Mapping[bytes, bytes], settings: GatewaySettings) -> bytes:
    """For an answer that brings every reader forward, however old it is."""
    return b"%b, max-age=60, stale-while-revalidate=300" % _whose(headers, settings)


def _whose(headers: Mapping[bytes, bytes], settings: GatewaySettings) -> bytes:
    """What somebody got with a credential is nobody else's."""
    is_own = b"authorization" in headers or settings.needs_credential
    return b"private" if is_own else b"public"


def to_cursor(text: str | None) -> int | None:
    """The cursor that the caller got last; None: it has none of ours."""
    if text is None or not (text.isascii() and text.isdigit()):
        return None
    return int(text) if len(text) <= _CURSOR_DIGITS_MAX else None


def next_cursor(present: int | None) -> int:
    """The interval that it is now, but always more than the caller's: else a cache that answered
    with something old would answer so for ever."""
    interval = (_clock.now_ms() - _CURSOR_BEGIN_MS) // _CURSOR_MS
    if present is None or present < interval:
        return interval
    seconds = random.randint(1, _JITTER_SECONDS_MAX)
    return present + max(1, seconds * 1000 // _CURSOR_MS)
