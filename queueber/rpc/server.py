"""The RPC server: accepts connections, gives each the bootstrap object, and lets them go in
time."""

import contextlib
from collections.abc import Callable
from typing import Any

import capnp
import structlog

from queueber.errors import Unavailable
from queueber.rpc.faults import early_fault
from queueber.schema import wire
from queueber.streams import serve_streams

_log = structlog.get_logger("queueber.rpc")

_TRANSPORT_FACTOR = 4
"""A message this many times the limit breaks the connection; up to there it gets a proper
refusal."""


_REFUSED_SECONDS = 1.0
"""How long a connection too many stays open, to hear why it is refused."""


class _Overloaded(wire.Service.Server):  # type: ignore[misc]  # capnp is untyped
    """The bootstrap object of a connection too many: refuses every call."""

    def __getattr__(self, name: str) -> Any:
        if not name.endswith("_context"):
            raise AttributeError(name)

        def refuse(context: Any) -> None:
            text = "the server has as many connections as it may; connect again in a moment"
            raise early_fault(Unavailable(text))

        return refuse


class RpcServer:
    """Runs on the asyncio loop; the bridge calls it from trio."""

    def __init__(
        self,
        bootstrap: Callable[[], Any],
        *,
        connections_max: int,
        message_bytes_max: int,
        call_later: Callable[[float, Callable[[], None]], object],
    ) -> None:
        """`bootstrap` makes the object that a new connection is given. Its `connection_ended` is
        called when the connection is over, unless the server ends itself."""
        self._bootstrap = bootstrap
        self._call_later = call_later
        self._connections_max = connections_max
        self._traversal_words = _TRANSPORT_FACTOR * message_bytes_max // 8
        self._bootstraps: dict[Any, Any] = {}
        self._listener: Any = None

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen; returns the address, with the port that was chosen when it was 0."""
        self._listener = await serve_streams(self._connected, host, port, backlog=1024)
        name = self._listener.sockets[0].getsockname()
        return name[0], name[1]

    def stop_accepting(self) -> None:
        self._listener.close()

    def close_connections(self) -> None:
        """At the end of the server. Those who hold leases will come back, so they keep them."""
        streams = list(self._bootstraps)
        self._bootstraps.clear()
        for stream in streams:
            stream.close()

    async def _connected(self, stream: Any) -> None:
        is_welcome = len(self._bootstraps) < self._connections_max
        bootstrap = self._bootstrap() if is_welcome else _Overloaded()
        if is_welcome:
            self._bootstraps[stream] = bootstrap
        else:
            _log.warning("connection_refused", connections=len(self._bootstraps))
            self._call_later(_REFUSED_SECONDS, stream.close)
        try:
            server = capnp.TwoPartyServer(
                stream, bootstrap=bootstrap, traversal_limit_in_words=self._traversal_words
            )
            # A connection that breaks is over like one that is closed; its calls are cancelled.
            with contextlib.suppress(capnp.KjException):
                await server.on_disconnect()
        finally:
            self._ended(stream)

    def _ended(self, stream: Any) -> None:
        bootstrap = self._bootstraps.pop(stream, None)
        if bootstrap is not None:
            bootstrap.connection_ended()
