"""The RPC server: accepts connections, gives each the bootstrap object, and lets them go in
time."""

import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any

import capnp
import structlog

from queueber.errors import Unavailable
from queueber.rpc.fair_turns import FairTurns
from queueber.rpc.faults import early_fault
from queueber.rpc.listener import Listener
from queueber.rpc.long_messages import MessageMemory
from queueber.rpc.policy import LONG_MESSAGES_BYTES_MAX
from queueber.rpc.served_stream import ServedStream
from queueber.schema import wire
from queueber.service.loop import Loop
from queueber.service.session import Session

_log = structlog.get_logger("queueber.rpc")

_TRANSPORT_FACTOR = 4
"""A message this many times the limit breaks the connection; up to there it gets a proper
refusal."""


_REFUSED_SECONDS = 1.0
"""How long a connection above the limit stays open, to be told why it is refused."""
REFUSED_MAX = 100
"""So many are told at a time; more are closed at once. Each takes an open file."""


class _Overloaded(wire.Service.Server):  # type: ignore[misc]  # capnp is untyped
    """The bootstrap object of a connection above the limit: refuses every call."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def __getattr__(self, name: str) -> Any:
        if not name.endswith("_context"):
            raise AttributeError(name)

        def refuse(context: Any) -> None:
            text = "the server has as many connections as it may; connect again in a moment"
            raise early_fault(Unavailable(text), self._session)

        return refuse


class RpcServer:
    """Runs on the asyncio loop; the bridge calls it from trio."""

    def __init__(
        self,
        bootstrap: Callable[[Session], Any],
        *,
        new_session: Callable[[], Session],
        connections_max: int,
        message_bytes_max: int,
        loop: Loop,
    ) -> None:
        """`bootstrap` makes the object that a new connection is given. Its `connection_ended` is
        called when the connection is over, unless the server ends itself."""
        self._bootstrap = bootstrap
        self._new_session = new_session
        self._memory = MessageMemory(LONG_MESSAGES_BYTES_MAX)
        self._turns = FairTurns(loop)
        self._listener = Listener(self._connect, self._turns)
        self._call_later = loop.call_later
        self._connections_max = connections_max
        self._traversal_words = _TRANSPORT_FACTOR * message_bytes_max // 8
        self._bootstraps: dict[Any, Any] = {}
        self._refused = 0

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen; returns the address, with the port that was chosen when it was 0."""
        return await self._listener.start(host, port)

    def _connect(self, scratch: memoryview) -> ServedStream:
        session = self._new_session()
        inner = capnp.AsyncIoStream._connect(partial(self._connected, session))
        return ServedStream(inner, scratch, session, self._memory, self._turns)

    def stop_accepting(self) -> None:
        self._listener.close()

    def close_connections(self) -> None:
        """At the end of the server. Callers that hold leases will reconnect, so they keep them."""
        streams = list(self._bootstraps)
        self._bootstraps.clear()
        for stream in streams:
            stream.close()

    async def _connected(self, session: Session, stream: Any) -> None:
        if len(self._bootstraps) < self._connections_max:
            bootstrap = self._bootstraps[stream] = self._bootstrap(session)
            try:
                await self._serve(stream, bootstrap)
            finally:
                self._ended(stream)
        elif self._refused < REFUSED_MAX:
            connections = len(self._bootstraps)
            _log.warning("connection_refused", connections=connections, **session.who)
            self._call_later(_REFUSED_SECONDS, stream.close)
            self._refused += 1
            try:
                await self._serve(stream, _Overloaded(session))
            finally:
                self._refused -= 1

    async def _serve(self, stream: Any, bootstrap: Any) -> None:
        server = capnp.TwoPartyServer(
            stream, bootstrap=bootstrap, traversal_limit_in_words=self._traversal_words
        )
        # A connection that breaks is over like one that is closed; its calls are cancelled.
        with contextlib.suppress(capnp.KjException):
            await server.on_disconnect()

    def _ended(self, stream: Any) -> None:
        bootstrap = self._bootstraps.pop(stream, None)
        if bootstrap is not None:
            bootstrap.connection_ended()
