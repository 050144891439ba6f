"""What all connections of one process share: their bounds, and who handles their calls."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Protocol

from queueber.gateway.bounds import Bound
from queueber.gateway.grpc.http2.call import Call
from queueber.gateway.grpc.http2.fair_turns import FairTurns

Handler = Callable[[Call], Coroutine[Any, Any, None]]
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
    """Bytes of messages that have come and are not handled."""
    message_bytes_max: int
    header_bytes_max: int
    connections_max: int
    header_timeout: float
    answer_timeout: float
    idle_timeout: float
    """All times in seconds."""
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
