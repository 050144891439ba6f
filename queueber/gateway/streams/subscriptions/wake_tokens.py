"""Tokens of wakes: who has one may acknowledge what the wake is about, and nothing else.

A token names its generation and when the wake began, and is signed with a key that all gateways of
a server have. So each of them can check it, and can make it again for the retry of a webhook.
"""

import base64
import hashlib
import hmac
import re
from typing import NamedTuple

from queueber.gateway.streams.subscriptions.records.record import Record
from queueber.gateway.streams.subscriptions.refusals import refusal
from queueber.limits import HOUR_MS

TOKEN_MS_MAX = 24 * HOUR_MS
"""However often its lease is extended, a wake ends after so long."""

_TOKEN = re.compile(r"dsw_([0-9]{1,18})_([0-9]{1,15})_([A-Za-z0-9_-]{43})")


def make_token(key: bytes, record: Record) -> str:
    """The token of the wake that the record has."""
    assert record.wake is not None
    return _token(key, record.id, record.generation, record.wake.begun_at_ms)


class WakeToken(NamedTuple):
    """A token that this server has made."""

    generation: int
    begun_at_ms: int


def to_wake_token(key: bytes, id: str, text: str, *, now_ms: int) -> WakeToken:
    """The token, if it is of that subscription and not too old; else it raises a `Refusal`."""
    match = _TOKEN.fullmatch(text)
    if match is None:
        raise refusal("TOKEN_INVALID", "authorization: this is not the token of a wake")
    generation, begun_at_ms = int(match[1]), int(match[2])
    if not hmac.compare_digest(_token(key, id, generation, begun_at_ms), text):
        raise refusal("TOKEN_INVALID", "authorization: the token is not of this subscription")
    if now_ms - begun_at_ms > TOKEN_MS_MAX:
        raise refusal("TOKEN_EXPIRED", "authorization: the wake began more than 24 hours ago")
    return WakeToken(generation, begun_at_ms)


def check_wake(
    record: Record, token: WakeToken, *, wake_id: str, generation: int, now_ms: int
) -> None:
    """Raise a `Refusal` unless the token, the wake and the generation are the present ones."""
    wake = record.wake
    has_ended = (
        wake is None
        or token != (record.generation, wake.begun_at_ms)
        or (generation, wake_id) != (record.generation, wake.id)
        or 0 < wake.lease_until_ms <= now_ms
    )
    if has_ended:
        raise refusal(
            "FENCED",
            f"generation {generation} is over: it is done, its lease has ended, or another worker "
            "was woken",
            generation=record.generation,
        )


def _token(key: bytes, id: str, generation: int, begun_at_ms: int) -> str:
    signed = f"{id}\n{generation}\n{begun_at_ms}".encode()
    digest = hmac.digest(key, signed, hashlib.sha256)
    text = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    return f"dsw_{generation}_{begun_at_ms}_{text}"
