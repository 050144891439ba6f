"""`queueber serve --http` for tests that kill it: it comes back on the same ports and data."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from queueber.testing import ServerProcess

_SECONDS_MAX = 20.0
_LONG_POLL_MS = "500"
"""Short, so that tests see long polls end."""


class StreamServer:
    """A server and the gateway that it starts beside itself."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self._address_file = folder / "http-address"
        self._server = ServerProcess(
            folder / "data",
            ("--http", "127.0.0.1:0", "--http-address-file", str(self._address_file)),
            {"QUEUEBER_GATEWAY_STREAM_WAIT_MS": _LONG_POLL_MS, **environment},
        )
        self.http_address = ""

    @property
    def address(self) -> str:
        """Where the server speaks Cap'n Proto."""
        return self._server.address

    @property
    def url(self) -> str:
        return f"http://{self.http_address}"

    def stream(self, path: str) -> str:
        """The address of a stream."""
        return f"{self.url}/v1/stream/{path}"

    def start(self) -> None:
        self._server.start()
        self.http_address = self._address_once_told()
        self._server.options = ("--http", self.http_address)

    def kill_gateway(self) -> None:
        """Kill the gateway's process, which the server starts again."""
        killed = self._gateway_process()
        os.kill(killed, signal.SIGKILL)
        _wait_until_gone(killed)

    def kill_and_start(self) -> None:
        """Kill the server, whose gateway ends with it, and start both on the same ports."""
        gateway = self._gateway_process()
        self._server.kill()
        _wait_until_gone(gateway)
        self._server.start()

    def stop(self) -> None:
        if self._server.process is not None and self._server.process.poll() is None:
            self._server.stop()

    def _address_once_told(self) -> str:
        give_up_at = time.monotonic() + _SECONDS_MAX
        while not (self._address_file.is_file() and self._address_file.read_text()):
            assert time.monotonic() < give_up_at, self._server.log_file.read_text()
            time.sleep(0.02)
        return self._address_file.read_text()

    def _gateway_process(self) -> int:
        assert self._server.process is not None
        give_up_at = time.monotonic() + _SECONDS_MAX
        while time.monotonic() < give_up_at:
            found = subprocess.run(
                ["ps", "-o", "pid=", "--ppid", str(self._server.process.pid)],
                capture_output=True, text=True, check=False,
            ).stdout.split()  # fmt: skip
            if found:
                return int(found[0])
            time.sleep(0.02)
        raise AssertionError("the server has no gateway")


def _wait_until_gone(process_id: int) -> None:
    give_up_at = time.monotonic() + _SECONDS_MAX
    while _is_running(process_id):
        assert time.monotonic() < give_up_at
        time.sleep(0.01)


def _is_running(process_id: int) -> bool:
    try:
        text = Path(f"/proc/{process_id}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return text.rpartition(")")[2].split()[0] != "Z"


@contextlib.contextmanager
def running_stream_server(folder: Path, **environment: str) -> Iterator[StreamServer]:
    server = StreamServer(folder, **environment)
    server.start()
    try:
        yield server
    finally:
        server.stop()
