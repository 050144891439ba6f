"""The listener: accepts connections in fair turns, as each costs as much as several calls."""

import asyncio
import errno
import os
import socket
from collections.abc import Callable
from functools import partial
from typing import Any

import structlog

from queueber.rpc.fair_turns import FairTurns
from queueber.wire.stream import SCRATCH_BYTES, Stream

_log = structlog.get_logger("queueber.rpc")

_BACKLOG = 1024
"""Connections that may wait to be accepted."""
_KEEP_ALIVE = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4}
"""After a minute of silence the kernel probes the other end, and gives it up after another."""

_OUT_OF_FILES = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
_RETRY_SECONDS = 1.0


class Listener:
    def __init__(self, make: Callable[[memoryview], Stream], turns: FairTurns) -> None:
        """`make` makes the stream of each connection, with a scratch buffer for all."""
        self._make = partial(make, memoryview(bytearray(SCRATCH_BYTES)))
        self._turns = turns
        self._sockets: list[socket.socket] = []
        self._accepting: set[Any] = set()

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen; returns the address, with the port that was chosen when it was 0."""
        self._loop = asyncio.get_running_loop()
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
        try:
            accepted, _ = listening.accept()
        except OSError as error:
            # Mostly one that has gone again meanwhile.
            if error.errno in _OUT_OF_FILES:
                _log.error("connection_not_accepted", error=os.strerror(error.errno))
                self._loop.call_later(_RETRY_SECONDS, self._watch, listening)
                return
        else:
            accepted.setblocking(False)
            served = self._loop.connect_accepted_socket(self._make, accepted)
            task = self._loop.create_task(served)
            self._accepting.add(task)
            task.add_done_callback(self._accepting.discard)
        self._watch(listening)


def _keep_alive(listening: socket.socket) -> None:
    """Connections inherit it: one whose other end is gone without a word is found out."""
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEP_ALIVE.items():
        if hasattr(socket, option):
            listening.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
