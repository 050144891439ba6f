"""A gateway beside the server: started with it, started again when it ends, stopped with it.

It is a process of its own. The server keeps the socket, so its port stays the same, and requests
that come while it is started again wait there.
"""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import structlog
import trio

from queueber.clock import seconds
from queueber.config import Config, split_address
from queueber.errors import QueueberError
from queueber.restarts import Backoff
from queueber.sockets import address_of, hold_port, listen

_log = structlog.get_logger("queueber")

_STOP_SECONDS_MAX = 15.0
"""After so long it is killed: it has nothing that would be lost."""


class GatewayBeside:
    """`start` it once, in a nursery of the server; `stop` it before the server stops."""

    def __init__(
        self,
        server: str,
        listening: socket.socket,
        flags: Sequence[str] = (),
        held: socket.socket | None = None,
    ) -> None:
        self._listening = listening
        self._held = held
        """Has the port of gRPC, on which the gateway itself listens."""
        self._command = [
            sys.executable, "-m", "queueber", "gateway", "--server", server,
            "--listening-fd", str(listening.fileno()), "--stops-with-stdin", *flags,
        ]  # fmt: skip
        self._process: trio.Process | None = None
        self._is_stopping = False
        self._has_ended = trio.Event()

    async def run(self) -> None:
        """Keep it running until `stop`."""
        backoff = Backoff(seconds)
        try:
            while not self._is_stopping:
                backoff.started()
                # It ends when its standard input does: so it never outlives the server.
                self._process = await trio.lowlevel.open_process(
                    self._command,
                    stdin=subprocess.PIPE,
                    pass_fds=(self._listening.fileno(),),
                    env=os.environ,
                )
                code = await self._process.wait()
                if self._is_stopping:
                    return
                wait = backoff.ended()
                _log.error("gateway_died", exit_code=code, restart_seconds=wait)
                await trio.sleep(wait)
        finally:
            self._end_now()
            self._has_ended.set()

    def _end_now(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()

    def reload(self) -> None:
        """Have it read its certificate again."""
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(signal.SIGHUP)

    async def stop(self) -> None:
        """Stop it: requests that wait are answered first."""
        self._is_stopping = True
        self._listening.close()
        if self._held is not None:
            self._held.close()
        if self._process is None or self._process.returncode is not None:
            return
        self._process.send_signal(signal.SIGTERM)
        with trio.move_on_after(_STOP_SECONDS_MAX):
            await self._has_ended.wait()
        self._end_now()


def gateway_beside(config: Config, server: str, address_file: Path | None) -> GatewayBeside | None:
    """The gateway that the server's options ask for; None: they ask for none."""
    if not config.http:
        return None
    listening = _taken(listen, config.http, "--http")
    held = _taken(hold_port, config.grpc, "--grpc") if config.grpc else None
    address = address_of(listening)
    if address_file is not None:
        address_file.write_text(address)
    flags = ["--http", address, "--log-level", config.log_level, "--log-format", config.log_format]
    if held is not None:
        flags += ["--grpc", address_of(held)]
    if config.insecure:
        flags.append("--insecure")
    if config.tls_certificate is not None:
        flags += ["--tls-certificate", str(config.tls_certificate), "--server-tls"]
    if config.tls_key is not None:
        flags += ["--tls-key", str(config.tls_key)]
    _log.info("gateway_starting", address=address)
    return GatewayBeside(server, listening, flags, held)


def _taken(take: Callable[[str, int], socket.socket], address: str, flag: str) -> socket.socket:
    try:
        return take(*split_address(address))
    except OSError as error:
        raise QueueberError(
            f"cannot listen on {address}: {(error.strerror or str(error)).lower()}; choose "
            f"another with {flag}"
        ) from None
