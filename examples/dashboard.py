"""A gateway for as long as an example runs: it shows the server in a browser.

It is a process of its own, so it stays up while the server is killed and started again.
"""

import contextlib
import http
import http.client
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

USUAL_PORT = 9091
START_SECONDS_MAX = 30.0


@contextlib.contextmanager
def dashboard(server: str) -> Iterator[str]:
    """The address of its page."""
    http_address = f"127.0.0.1:{_free_port()}"
    command = [
        sys.executable, "-m", "queueber", "gateway", "--server", server, "--http", http_address
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_until_ready(process, http_address)
        yield f"http://{http_address}/"
    finally:
        process.terminate()
        process.wait()


def _free_port() -> int:
    """The usual one, or another if that is taken."""
    for port in (USUAL_PORT, 0):
        with socket.socket() as tried, contextlib.suppress(OSError):
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind(("127.0.0.1", port))
            found: int = tried.getsockname()[1]
            return found
    raise OSError("there is no free port on 127.0.0.1")


def _wait_until_ready(process: "subprocess.Popen[bytes]", address: str) -> None:
    give_up_at = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < give_up_at and process.poll() is None:
        connection = http.client.HTTPConnection(address, timeout=5)
        with contextlib.suppress(OSError), contextlib.closing(connection):
            connection.request("GET", "/healthz")
            if connection.getresponse().status == http.HTTPStatus.OK:
                return
        time.sleep(0.05)
    raise RuntimeError("the gateway did not start; is the extra 'http' installed?")
