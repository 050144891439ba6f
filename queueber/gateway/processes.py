"""`queueber gateway`: one process, or several that share a port, until SIGTERM or Ctrl-C.

Several are children of one that only watches them: it starts one that ends again, on the same
socket, so that connections that wait there are not lost.
"""

import asyncio
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

import uvloop

from queueber.clock import seconds
from queueber.config import split_address
from queueber.errors import QueueberError
from queueber.gateway.log import log
from queueber.gateway.server import run_gateway
from queueber.gateway.settings import GatewaySettings
from queueber.memory import collect_seldom, keep_freed_memory
from queueber.restarts import Backoff
from queueber.sockets import address_of, hold_port, listen

_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_WATCHED = (*_STOP_SIGNALS, signal.SIGHUP, signal.SIGCHLD)
_LOOK_SECONDS = 0.5
_OTHER_FILES = 200
"""Open files beside connections: the log, the loop, TLS handshakes, connections to be refused."""


def run(
    settings: GatewaySettings,
    *,
    address_file: Path | None = None,
    grpc_address_file: Path | None = None,
    listening_fd: int | None = None,
    stops_with_stdin: bool = False,
) -> None:
    """Listen and serve. Raises a `QueueberError` if that is not possible.

    `listening_fd` is a socket that listens already. With `stops_with_stdin` the end of standard
    input stops it, too: whoever started it is gone.
    """
    settings = _with_files(settings)
    # Kept open: so nobody else gets the port while a process is started again.
    held_port, settings = _hold_grpc_port(settings, is_held=listening_fd is not None)
    sockets = (
        _listen_all(settings)
        if listening_fd is None
        else [socket.socket(fileno=listening_fd)] * settings.processes
    )
    if grpc_address_file is not None and settings.grpc is not None:
        grpc_address_file.write_text(settings.grpc)
    if address_file is not None:
        address_file.write_text(address_of(sockets[0]))
    with held_port:
        if len(sockets) == 1:
            _serve(settings, sockets[0], stops_with_stdin=stops_with_stdin)
        else:
            _Children(settings, sockets).run()


def _with_files(settings: GatewaySettings) -> GatewaySettings:
    """Raise the soft limit of open files, often 1,024; fewer connections if that is not enough."""
    others = settings.clients_max + _OTHER_FILES
    wanted = settings.connections_max + others
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return settings
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    if allowed == wanted:
        return settings
    clients = min(settings.clients_max, max(1, allowed // 4))
    connections = max(1, allowed - clients - _OTHER_FILES)
    log.warning("open_files_limited", allowed=allowed, wanted=wanted, connections=connections)
    return replace(settings, connections_max=connections, clients_max=clients)


def _hold_grpc_port(
    settings: GatewaySettings, *, is_held: bool
) -> tuple[AbstractContextManager[object], GatewaySettings]:
    """A socket that has the port of gRPC and does not listen, and the settings with its number.

    The processes, whose sockets gRPC makes itself, share the port with it. With `is_held` whoever
    started this process has it.
    """
    if settings.grpc is None or is_held:
        return nullcontext(), settings
    try:
        held = hold_port(*split_address(settings.grpc))
    except OSError as error:
        raise QueueberError(
            f"cannot listen on {settings.grpc}: {(error.strerror or str(error)).lower()}; "
            "choose another with --grpc"
        ) from None
    return held, replace(settings, grpc=address_of(held))


def _listen_all(settings: GatewaySettings) -> list[socket.socket]:
    """A socket for each process, all on one port."""
    host, port = split_address(settings.http)
    shares = settings.processes > 1
    found: list[socket.socket] = []
    try:
        for _ in range(settings.processes):
            found.append(listen(host, port, shares_port=shares))
            port = found[0].getsockname()[1]
    except OSError as error:
        raise QueueberError(
            f"cannot listen on {settings.http}: {(error.strerror or str(error)).lower()}; "
            "choose another with --http"
        ) from None
    return found


def _serve(
    settings: GatewaySettings, listening: socket.socket, *, stops_with_stdin: bool = False
) -> None:
    async def serve() -> None:
        stop, loop = asyncio.Event(), asyncio.get_running_loop()
        for number in _STOP_SIGNALS:
            loop.add_signal_handler(number, stop.set)
        loop.add_signal_handler(signal.SIGHUP, lambda: None)
        if stops_with_stdin:
            loop.add_reader(sys.stdin.fileno(), _stop_at_end, stop)
        await run_gateway(settings, listening, stop)

    keep_freed_memory()
    collect_seldom()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve())


def _stop_at_end(stop: asyncio.Event) -> None:
    if not os.read(sys.stdin.fileno(), 1024):
        asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
        stop.set()


class _Children:
    """The processes of a gateway, and who starts them again."""

    def __init__(self, settings: GatewaySettings, sockets: list[socket.socket]) -> None:
        self._settings = settings
        self._sockets = sockets
        self._slots: dict[int, int] = {}
        """Which socket each living process has."""
        self._due: dict[int, float] = dict.fromkeys(range(len(sockets)), 0.0)
        """When the process of a socket is to be started."""
        self._backoffs = [Backoff(seconds) for _ in sockets]

    def run(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
        while True:
            self._start_due()
            got = signal.sigtimedwait(_WATCHED, _LOOK_SECONDS)
            number = None if got is None else got.si_signo
            if number in _STOP_SIGNALS:
                break
            if number == signal.SIGHUP:
                self._tell_all(signal.SIGHUP)
            self._reap(self._died)
        self._tell_all(signal.SIGTERM)
        while self._slots:
            signal.sigtimedwait(_WATCHED, _LOOK_SECONDS)
            self._reap(lambda slot, code: None)

    def _start_due(self) -> None:
        for slot, at in list(self._due.items()):
            if seconds() >= at:
                del self._due[slot]
                self._backoffs[slot].started()
                self._slots[self._fork(slot)] = slot

    def _fork(self, slot: int) -> int:
        process_id = os.fork()
        if process_id:
            return process_id
        code = 1
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _WATCHED)
            for other in self._sockets:
                if other is not self._sockets[slot]:
                    other.close()
            _serve(self._settings, self._sockets[slot])
            code = 0
        except BaseException as error:
            log.critical("gateway_crashed", exc_info=error)
            raise
        finally:
            os._exit(code)  # not the parent's ends

    def _tell_all(self, number: int) -> None:
        for process_id in self._slots:
            os.kill(process_id, number)

    def _reap(self, ended: Callable[[int, int], None]) -> None:
        while self._slots:
            process_id, status = os.waitpid(-1, os.WNOHANG)
            if not process_id:
                return
            slot = self._slots.pop(process_id)
            ended(slot, os.waitstatus_to_exitcode(status))

    def _died(self, slot: int, code: int) -> None:
        wait = self._backoffs[slot].ended()
        self._due[slot] = seconds() + wait
        log.error("gateway_died", exit_code=code, restart_seconds=wait)
