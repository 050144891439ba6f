"""Values of callers: how they prove who they are, and what they were granted."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Credential:
    """A token, or a user with a password. Its text never shows either."""

    token: str = field(default="", repr=False)
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Grant:
    """A role in the queues and topics whose names match a pattern; `*` stands for any text."""

    role: str
    queues: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CallerInfo:
    """Who calls, as the server knows it."""

    name: str
    grants: tuple[Grant, ...] = ()
    expires_at_ms: int = 0
    """When the credential ends; 0: never."""


@dataclass(frozen=True, slots=True)
class SessionTokens:
    """What a user gets for a password: a token for calls, and one for new tokens."""

    access: str = field(repr=False)
    access_expires_at_ms: int
    refresh: str = field(repr=False)
    refresh_expires_at_ms: int
