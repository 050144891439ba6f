"""The record of a subscription: all that is known of it, in one JSON object.

Records do not change: a transition makes a new one, and `register.py` puts it in the place of the
one that it was made from, if that is still there.
"""

import hashlib
from typing import Literal

import msgspec

from queueber.gateway.streams.subscriptions.records.positions import Position

LINKS_MAX = 1_000
"""Streams of one subscription. Each change writes the whole record, about 90 bytes a stream."""

Kind = Literal["webhook", "pull-wake"]


class Link(msgspec.Struct, frozen=True, omit_defaults=True):
    """A stream of a subscription, and up to where it is acknowledged."""

    acked: Position
    is_explicit: bool = False
    is_glob: bool = False

    @property
    def kind(self) -> str:
        return "explicit" if self.is_explicit else "glob"


class Wake(msgspec.Struct, frozen=True, omit_defaults=True):
    """A worker has been woken, or is about to be. There is one at a time."""

    id: str
    begun_at_ms: int
    snapshot: dict[str, Position]
    """Where each stream ended."""
    holder: str = ""
    """The worker that claimed it."""
    lease_until_ms: int = 0
    """When somebody else is woken instead; 0: when it is claimed."""
    attempt_at_ms: int = 0
    """When the webhook is sent, by whichever gateway comes first; 0: it has arrived."""


class Record(msgspec.Struct, frozen=True, omit_defaults=True):
    id: str
    type: Kind
    lease_ttl_ms: int
    created_at_ms: int
    config_hash: str
    base_url: str
    """What the addresses in webhooks and answers begin with."""
    pattern: str | None = None
    webhook_url: str | None = None
    wake_stream: str | None = None
    description: str | None = None
    links: dict[str, Link] = {}
    """By path."""
    generation: int = 0
    """Of the last wake. It never goes back."""
    wake: Wake | None = None
    failures: int = 0
    """Attempts of the webhook that failed since the last one that did not."""
    change: str = ""
    """Chosen at random for each change: so a gateway knows its own when it sees it again."""

    @property
    def status(self) -> str:
        return "failed" if self.failures else "active"

    def url(self, action: str) -> str:
        return f"{self.base_url}/v1/stream/__ds/subscriptions/{self.id}/{action}"


class Config(msgspec.Struct, frozen=True):
    """What the creator of a subscription chooses."""

    type: Kind
    pattern: str | None
    streams: tuple[str, ...]
    webhook_url: str | None
    wake_stream: str | None
    lease_ttl_ms: int
    description: str | None

    @property
    def hash(self) -> str:
        """Equal for configurations that are equal but for order and repetition of streams."""
        same = msgspec.structs.replace(self, streams=tuple(sorted(set(self.streams))))
        return hashlib.sha256(msgspec.json.encode(same)).hexdigest()


encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(Record).decode
