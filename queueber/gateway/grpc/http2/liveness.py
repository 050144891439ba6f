"""When a connection has to end: its peer is silent, late, idle, or pings all the time."""

from queueber.gateway.grpc.http2.shared import Shared

PING_SECONDS = 30.0
"""After so long without a byte of the peer it is pinged."""
ANSWER_SECONDS = 20.0
"""How long it may take to answer."""
CALLER_PING_SECONDS = 10.0
"""How often a peer may ping while nothing is sent."""
_STRIKES_MAX = 2
_END_SECONDS = 1.0


class Liveness:
    """Times are those of the loop, in seconds; the connection says what happens."""

    __slots__ = (
        "_idle_since",
        "_pinged_at",
        "_shared",
        "_strikes",
        "_their_ping_at",
        "ended_at",
        "has_answered",
        "has_greeted",
        "head_began_at",
        "is_full_since",
        "made_at",
        "received_at",
    )  # fmt: skip

    def __init__(self, shared: Shared, now: float) -> None:
        self._shared = shared
        self.made_at = self.received_at = now
        self.has_greeted = False
        self.head_began_at: float | None = None
        self.is_full_since: float | None = None
        self.ended_at: float | None = None
        """When we have hung up: what was sent before may take a moment."""
        self.has_answered = False
        """Whether a call was sent anything since the peer's last ping."""
        self._idle_since: float | None = now
        self._pinged_at: float | None = None
        self._their_ping_at = 0.0
        self._strikes = 0

    def has_calls(self) -> None:
        self._idle_since = None

    def has_no_calls(self, now: float) -> None:
        self._idle_since = now

    def is_dead(self, now: float) -> bool:
        """Whether the peer has missed a deadline."""
        shared = self._shared
        if self.ended_at is not None:
            return now - self.ended_at > _END_SECONDS
        if not self.has_greeted:
            return now - self.made_at > shared.header_timeout
        if self.head_began_at is not None and now - self.head_began_at > shared.header_timeout:
            return True
        if self.is_full_since is not None and now - self.is_full_since > shared.answer_timeout:
            return True
        pinged = self._pinged_at
        # An answer may come in the millisecond of the ping, and nothing came for long before it.
        if pinged is not None and self.received_at >= pinged:
            self._pinged_at = None
            return False
        return pinged is not None and self.is_full_since is None and now - pinged > ANSWER_SECONDS

    def is_idle(self, now: float) -> bool:
        return self._idle_since is not None and now - self._idle_since > self._shared.idle_timeout

    def needs_ping(self, now: float) -> bool:
        """Whether to ping the peer now; says so once."""
        if self._pinged_at is not None or now - self.received_at <= PING_SECONDS:
            return False
        self._pinged_at = now
        return True

    def is_pinged_too_often(self, now: float) -> bool:
        """The peer pings. It may do so now and then, or when a call of it was sent something."""
        since, self._their_ping_at = now - self._their_ping_at, now
        was_answered, self.has_answered = self.has_answered, False
        if since >= CALLER_PING_SECONDS or was_answered:
            self._strikes = 0
            return False
        self._strikes += 1
        return self._strikes > _STRIKES_MAX
