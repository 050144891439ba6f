"""A server whose clock a test moves: `queueber serve`, with another clock and nothing else.

Only the process that started it can move the clock, through a socket that this one inherits, and
it serves its own machine only. `queueber serve` has no such option.

    python -m queueber.testing.clock_server --clock-fd 5 --listen 127.0.0.1:0 ...
"""

import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import click
import trio

from queueber.cli.commands.serve import config_flags
from queueber.clock import SystemClock
from queueber.config import is_loopback, load_config
from queueber.errors import InvalidArgument
from queueber.testing.clock_link import ADVANCE_MS_MAX

_REQUEST_BYTES = 64


class MovableClock(SystemClock):
    """The system's clock, and what it was moved by. It never goes back."""

    def __init__(self, link: socket.socket, advanced_ms: int = 0) -> None:
        super().__init__()
        self._link = link
        self._advanced_ms = advanced_ms

    def now_ms(self) -> int:
        return super().now_ms() + self._advanced_ms

    def advance(self, ms: int) -> None:
        if ms < 0 or self._advanced_ms + ms > ADVANCE_MS_MAX:
            raise InvalidArgument(f"advance: {ms} ms is outside 0 to {ADVANCE_MS_MAX} in all")
        self._advanced_ms += ms

    async def run(self, do_due: Callable[[], Awaitable[None]]) -> None:
        """Move as the test says, until it closes its end."""
        with trio.socket.from_stdlib_socket(self._link) as link:
            request = b""
            while received := await link.recv(_REQUEST_BYTES):
                request += received
                if not request.endswith(b"\n"):
                    continue
                self.advance(int(request))
                request = b""
                await do_due()
                await link.send(b"%d\n" % self.now_ms())


@click.command()
@click.option("--clock-fd", type=int, required=True, help="The socket that moves the clock.")
@click.option("--advanced-ms", type=int, default=0, help="How far it was moved before a restart.")
@click.option("--address-file", type=click.Path(path_type=Path))
@click.option("--http-address-file", type=click.Path(path_type=Path))
@config_flags
def serve(
    clock_fd: int,
    advanced_ms: int,
    address_file: Path | None,
    http_address_file: Path | None,
    **flags: str | None,
) -> None:
    """Run a server for a test, until SIGTERM."""
    from queueber.app import serve as run_server
    from queueber.logs import configure_logs

    config = load_config(flags)
    for address in config.addresses.values():
        if not is_loopback(address):
            raise click.UsageError(
                f"a server whose clock is moved is for tests on one machine; {address} is not "
                "an address of this machine alone"
            )
    link = socket.socket(fileno=clock_fd)
    link.setblocking(False)
    configure_logs(config.log_level, config.log_format, for_good=True)
    run_server(
        config,
        address_file=address_file,
        http_address_file=http_address_file,
        clock=MovableClock(link, advanced_ms),
    )


if __name__ == "__main__":
    serve()
