"""The RPC server: accepts connections in fair turns, as each costs as much as several calls, gives
each the bootstrap object, and lets them go in time."""

import asyncio
import contextlib
import errno
import os
import socket
import ssl
from collections.abc import Callable
from functools import partial
from typing import Any

import capnp
import structlog

from queueber.errors import Unavailable
from queueber.model import MetricFamily, Sample
from queueber.rpc.buffers import MessageMemory
from queueber.rpc.calls import early_fault
from queueber.rpc.fair_turns import FairTurns
from queueber.rpc.handshakes import Handshakes
from queueber.rpc.served_stream import ServedStream, shown_address
from queueber.schema import wire
from queueber.service.loop import Loop
from queueber.service.measures import metrics
from queueber.service.session import Session
from queueber.wire.stream import SCRATCH_BYTES, Stream

_log = structlog.get_logger("queueber.rpc")

_BACKLOG = 1024
"""Connections that may wait to be accepted."""
_KEEP_ALIVE = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4}
"""After a minute of silence the kernel probes the other end, and gives it up after another."""

_OUT_OF_FILES = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
_RETRY_SECONDS = 1.0
_FULL_SECONDS = 0.02
"""How long the next caller waits while there are too many TLS handshakes."""


class Listener:
    def __init__(
        self,
        make: Callable[[memoryview], Stream],
        turns: FairTurns,
        tls: Callable[[], ssl.SSLContext] | None = None,
    ) -> None:
        """`make` makes the stream of each connection, with a scratch buffer for all. `tls` returns
        the context of a new connection; None: connections are plain."""
        self._tls = tls
        self._handshakes: Handshakes | None = None
        self._make = partial(make, memoryview(bytearray(SCRATCH_BYTES)))
        self._turns = turns
        self._sockets: list[socket.socket] = []
        self._accepting: set[Any] = set()

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen; returns the address, with the port that was chosen when it was 0."""
        self._loop = asyncio.get_running_loop()
        self._handshakes = Handshakes(self._loop, self._tls) if self._tls is not None else None
        bound = await self._loop.create_server(asyncio.Protocol, host, port, start_serving=False)
        self._sockets = [socket.socket(fileno=os.dup(each.fileno())) for each in bound.sockets]
        bound.close()
        for each in self._sockets:
            each.setblocking(False)
            each.listen(_BACKLOG)
            _keep_alive(each)
            self._watch(each)
        name = self._sockets[0].getsockname()
        return name[0], name[1]

    def close(self) -> None:
        """Those that were accepted stay."""
        for each in self._sockets:
            self._loop.remove_reader(each)
            each.close()
        self._sockets.clear()

    def _watch(self, listening: socket.socket) -> None:
        if self._sockets:
            self._loop.add_reader(listening, self._ready, listening)

    def _ready(self, listening: socket.socket) -> None:
        self._loop.remove_reader(listening)
        self._turns.run(partial(self._accept, listening))

    def _accept(self, listening: socket.socket) -> None:
        if not self._sockets:
            return
        if self._handshakes is not None and not self._handshakes.make_room():
            self._loop.call_later(_FULL_SECONDS, self._watch, listening)
            return
        try:
            accepted, peer = listening.accept()
        except OSError as error:
            # Mostly one that has gone again meanwhile.
            if error.errno in _OUT_OF_FILES:
                _log.error("connection_not_accepted", error=os.strerror(error.errno))
                self._loop.call_later(_RETRY_SECONDS, self._watch, listening)
                return
        else:
            accepted.setblocking(False)
            self._serve(accepted, peer)
        self._watch(listening)

    def _serve(self, accepted: socket.socket, peer: Any) -> None:
        if self._handshakes is not None:
            self._handshakes.begin(self._make, accepted, shown_address(peer))
            return
        served = self._loop.connect_accepted_socket(self._make, accepted)
        task = self._loop.create_task(served)
        self._accepting.add(task)
        task.add_done_callback(self._accepting.discard)


def _keep_alive(listening: socket.socket) -> None:
    """Connections inherit it: one whose other end is gone without a word is found out."""
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEP_ALIVE.items():
        if hasattr(socket, option):
            listening.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


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
        tls: Callable[[], ssl.SSLContext] | None = None,
    ) -> None:
        """`bootstrap` makes the object that a new connection is given. Its `connection_ended` is
        called when the connection is over, unless the server ends itself. `tls` returns the context
        of a new connection; None: connections are plain."""
        self._bootstrap = bootstrap
        self._new_session = new_session
        self._memory = MessageMemory()
        self._turns = FairTurns(loop)
        self._listener = Listener(self._connect, self._turns, tls)
        self._call_later = loop.call_later
        self._connections_max = connections_max
        self._traversal_words = _TRANSPORT_FACTOR * message_bytes_max // 8
        self._bootstraps: dict[Any, Any] = {}
        self._refused = 0
        self._accepted_total = self._refused_total = 0

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen; returns the address, with the port that was chosen when it was 0."""
        return await self._listener.start(host, port)

    def _connect(self, scratch: memoryview) -> ServedStream:
        session = self._new_session()
        inner = capnp.AsyncIoStream._connect(partial(self._connected, session))
        return ServedStream(inner, scratch, session, self._memory, self._turns)

    def families(self) -> list[MetricFamily]:
        """What is measured of connections."""
        outcomes = {"accepted": self._accepted_total, "refused": self._refused_total}
        totals = [Sample((outcome,), (count,)) for outcome, count in outcomes.items()]
        return [
            MetricFamily(metrics.CONNECTIONS, [Sample((), (len(self._bootstraps),))]),
            MetricFamily(metrics.CONNECTIONS_MAX, [Sample((), (self._connections_max,))]),
            MetricFamily(metrics.CONNECTIONS_TOTAL, totals),
        ]

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
            self._accepted_total += 1
            bootstrap = self._bootstraps[stream] = self._bootstrap(session)
            try:
                await self._serve(stream, bootstrap)
            finally:
                self._ended(stream)
            return
        self._refused_total += 1
        if self._refused < REFUSED_MAX:
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
