"""The network: delays calls and answers, and breaks connections."""

import asyncio
from random import Random
from typing import Any

from faults.history import Outcome
from faults.recorder import Recorder
from faults.simulation.loop import SimulatedLoop
from faults.simulation.server import Server, Verb
from queueber.service.session import Session
from queueber.service.unread_answers import AnswerBudget


class ConnectionLost(Exception):
    """The call will get no answer."""


class Connection:
    """A connection of one client to one run of the server."""

    def __init__(self, network: "Network", server: Server) -> None:
        self._network = network
        self._server = server
        self._under_way: list[asyncio.Future[Any]] = []
        self._tasks: list[asyncio.Task[None]] = []
        self.session = Session(server.admission, AnswerBudget())
        """The server's session of it."""
        self.leases: list[str] = []
        """The leases that are bound to it."""
        self.is_open = True
        """Whether it is open for the client."""
        self._is_served = True

    @property
    def is_awaited(self) -> bool:
        """Whether the client still waits for an answer."""
        return any(not answer.done() for answer in self._under_way)

    @property
    def last_sequence(self) -> int:
        """That of the last message which the server has written, perhaps not for good."""
        return self._server.service.shell.engine.topics.sequences.last

    async def call(self, verb: Verb) -> Any:
        """The server's answer. Raises its error, or `ConnectionLost`."""
        answer: asyncio.Future[Any] = self._network.loop.create_future()
        self._under_way.append(answer)
        self._network.later(self._arrive, verb, answer)
        try:
            return await answer
        finally:
            self._under_way.remove(answer)

    def _arrive(self, verb: Verb, answer: "asyncio.Future[Any]") -> None:
        # The server still handles a call that arrives before it notices the end of the connection.
        if not self._is_served or self._server.disk.is_dead:
            return

        def reply(found: Any, error: BaseException | None) -> None:
            if not self._server.disk.is_dead:
                self._network.later(self._come_back, answer, found, error)

        task = self._server.call(verb, reply, self.session)
        if task is not None:
            self._tasks.append(task)

    def _come_back(
        self, answer: "asyncio.Future[Any]", found: Any, error: BaseException | None
    ) -> None:
        if not self.is_open or answer.done():
            return
        if error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(found)

    def cut(self) -> None:
        """Lose it for the client. A running server notices a little later."""
        if self.is_open:
            self.is_open = False
            for answer in self._under_way:
                if not answer.done():
                    answer.set_exception(ConnectionLost())
            self._network.later(self._hang_up)

    def _hang_up(self) -> None:
        self._is_served = False
        if not self._server.disk.is_dead:
            self._server.begin(self._end_on_server())

    async def _end_on_server(self) -> None:
        """End it as the server does: first its subscriptions and calls, then its bound leases."""
        self._server.service.subscriptions.connection_ended(self.session)
        tasks = [task for task in self._tasks if not task.done()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        self._server.service.bound_leases.connection_ended(self)


class Network:
    def __init__(self, loop: SimulatedLoop, random: Random, recorder: Recorder) -> None:
        self.loop = loop
        self._random = random
        self._recorder = recorder
        self._server: Server | None = None
        self._connections: list[Connection] = []

    def later(self, callback: Any, *arguments: Any) -> None:
        """A random delay: most messages are fast, some slow."""
        mean_ms = self._random.choice([0.1, 0.1, 0.1, 1, 1, 10])
        self.loop.call_later(self._random.expovariate(1 / mean_ms) / 1000, callback, *arguments)

    def connect(self) -> Connection | None:
        """A new connection; None if there is no server."""
        if self._server is None:
            return None
        self._connections = [each for each in self._connections if each.is_open]
        connection = Connection(self, self._server)
        self._connections.append(connection)
        return connection

    def serve(self, server: Server | None) -> None:
        """Set the server that answers from now on; None: it has gone, and connections notice."""
        self._server = server
        if server is None:
            for connection in self._connections:
                self.later(connection.cut)

    def hang_up(self, client: str, connection: Connection) -> None:
        pending = self._recorder.begin(client, "hang_up", "", {"leases": list(connection.leases)})
        connection.cut()
        self._recorder.end(pending, Outcome.OK)
