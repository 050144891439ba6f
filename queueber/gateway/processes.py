"""`queueber gateway`: one process or several on one socket, until SIGTERM or Ctrl-C."""

import asyncio
import signal
import socket
from pathlib import Path

import uvloop

from queueber.config import split_address
from queueber.errors import QueueberError
from queueber.gateway.server import address_of, listen, run_gateway
from queueber.gateway.settings import GatewaySettings


def run(settings: GatewaySettings, *, address_file: Path | None = None) -> None:
    """Listen and serve. Raises a `QueueberError` if that is not possible."""
    try:
        listening = listen(split_address(settings.http))
    except OSError as error:
        raise QueueberError(
            f"cannot listen on {settings.http}: {(error.strerror or str(error)).lower()}; "
            "choose another with --http"
        ) from None
    if address_file is not None:
        address_file.write_text(address_of(listening))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(settings, listening))


async def _serve(settings: GatewaySettings, listening: socket.socket) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await run_gateway(settings, listening, stop)
