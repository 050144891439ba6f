"""What all connections of one process share: their bounds, and who handles their calls."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Protocol

from queueber.gateway.bounds import Bound
from queueber.gateway.grpc.http2.call import Call
from queueber.gateway.grpc.http2.fair_turns import FairTurns
from queueber.limits import KIB, MIB

SMALL_MESSAGE_BYTES_MAX = 16 * KIB
"""Of what callers say but for what they publish. A stream keeps its first message for as long as
it is open, and may have no credential: those of a thousand streams must not be gigabytes."""
_SMALL_BODIES_BYTES_MAX = 64 * MIB
"""Of all such messages that are not handled. They are no bodies, or a few hundred streams that
say much, and need no credential, would keep others from publishing."""

Handling = Coroutine[Any, Any, None] | asyncio.Future[Any] | None
"""What is cancelled when the caller goes; None: the call has ended."""
Handler = Callable[[Call], Handling]
"""Handles a call from its first message on, and ends it."""


class Watched(Protocol):
    """A connection."""

    def look(self, now: float) -> None: ...
    def stop(self) -> None: ...
    def abort(self) -> None: ...


@dataclass(slots=True)
class Shared:
    handlers: dict[bytes, Handler]
    """By the path of their method."""
    bodies: Bound
    """Bytes of messages that publish, have come and are not handled."""
    message_bytes_max: dict[bytes, int]
    """By the path of a method that publishes; of others it is `SMALL_MESSAGE_BYTES_MAX`."""
    header_bytes_max: int
    connections_max: int
    header_timeout: float
    answer_timeout: float
    idle_timeout: float
    """All times in seconds."""
    small_bodies: Bound = field(
        default_factory=lambda: Bound("bytes of messages are not handled", _SMALL_BODIES_BYTES_MAX)
    )
    is_stopping: bool = False
    turns: FairTurns = field(default_factory=FairTurns)
    connections: set[Watched] = field(default_factory=set)
    are_gone: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the server stops, and the last connection has gone."""
    waiting: dict[Call, float] = field(default_factory=dict)
    """Calls whose first message has not come, and when they began, in that order."""

    def left(self, connection: Watched) -> None:
        self.connections.discard(connection)
        if self.is_stopping and not self.connections:
            self.are_gone.set()
