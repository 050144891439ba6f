"""A caller's connection to the server: it records calls, and it breaks."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeAlias

from faults.history import Outcome
from faults.recorder import Recorder, outcome_of
from faults.simulation.network import Connection, ConnectionLost, Network
from queueber.errors import QueueberError
from queueber.service.service import Service
from queueber.service.session import Session

_RECONNECT_MS = 5
_BREAK_CHANCE = 0.1
"""The chance that the connection breaks after a while. About half of the calls end before."""
_BREAKS_AFTER_MS = (0.2, 2, 20)
"""Average time until it breaks: during sending, syncing or waiting."""

Ask: TypeAlias = Callable[[Service, Any], Awaitable[Any]]
Tell: TypeAlias = Callable[[Any], dict[str, Any]]


@dataclass
class Rumours:
    """Ids of items that callers share, so that they interfere with each other."""

    items: list[bytes] = field(default_factory=list)
    is_over: bool = False
    """All callers should finish now, and connections do not break any more."""


class Contact:
    def __init__(
        self,
        name: str,
        queue: str,
        network: Network,
        recorder: Recorder,
        rumours: Rumours,
        random: Random,
    ) -> None:
        self.name = name
        self.queue = queue
        self.rumours = rumours
        self.random = random
        self._network = network
        self._recorder = recorder
        self._connection: Connection | None = None

    async def sleep_ms(self, mean_ms: float) -> None:
        await asyncio.sleep(self._some_seconds(mean_ms))

    def _some_seconds(self, mean_ms: float) -> float:
        return self.random.expovariate(1 / mean_ms) / 1000

    async def connected(self) -> Connection:
        while self._connection is None or not self._connection.is_open:
            self._connection = self._network.connect()
            if self._connection is None:
                await self.sleep_ms(_RECONNECT_MS)
        return self._connection

    def hang_up(self) -> None:
        if self._connection is not None and self._connection.is_open:
            self._network.hang_up(self.name, self._connection)

    async def call(
        self, operation: str, arguments: Mapping[str, Any], ask: Ask, tell: Tell
    ) -> Any | None:
        """The answer; None if refused. Raises `ConnectionLost` if the outcome is unknown."""
        connection = await self.connected()
        pending = self._recorder.begin(self.name, operation, self.queue, arguments)
        breaking = self._maybe_break(connection)
        try:
            found = await connection.call(
                lambda service: ask(service, self._target(service, connection.session))
            )
        except ConnectionLost:
            self._recorder.end(pending, Outcome.UNKNOWN)
            raise
        except QueueberError as error:
            outcome = outcome_of(error)
            self._recorder.end(pending, outcome)
            if outcome is Outcome.UNKNOWN:
                raise ConnectionLost from error
            return None
        finally:
            if breaking is not None:
                breaking.cancel()
        pending.answered(**tell(found))
        self._recorder.end(pending, Outcome.OK)
        return found

    def _target(self, service: Service, session: Session) -> Any:
        """What the calls are about."""
        return service.queues.handle(self.queue, session)

    def _maybe_break(self, connection: Connection) -> asyncio.TimerHandle | None:
        """A timer that breaks the connection if the call has not ended by then."""
        random = self.random
        if self.rumours.is_over or random.random() >= _BREAK_CHANCE:
            return None
        seconds = self._some_seconds(random.choice(_BREAKS_AFTER_MS))
        return self._network.loop.call_later(seconds, self._break, connection)

    def _break(self, connection: Connection) -> None:
        # An answer that came in this turn is delivered before the connection ends.
        if connection.is_open and connection.is_awaited:
            self._network.hang_up(self.name, connection)
