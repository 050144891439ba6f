"""A real server for tests of programs that use Queueber: it runs as long as a `with` block."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

START_SECONDS_MAX = 30.0
STOP_SECONDS_MAX = 30.0


@dataclass(slots=True)
class ServerProcess:
    """A server in its own process. `running_server` starts it."""

    data_dir: Path
    options: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    address: str = "127.0.0.1:0"
    process: "subprocess.Popen[bytes] | None" = None
    command: tuple[str, ...] = (sys.executable, "-m", "queueber")

    @property
    def log_file(self) -> Path:
        """The server's log, one JSON object a line."""
        return self.data_dir.with_name(self.data_dir.name + ".log")

    def start(self) -> None:
        """Start the server, or restart it with the same data and port."""
        with tempfile.TemporaryDirectory(prefix="queueber-") as folder:
            address_file = Path(folder) / "address"
            command = [
                *self.command, "serve",
                "--listen", self.address,
                "--data-dir", str(self.data_dir),
                "--address-file", str(address_file),
                *self.options,
            ]  # fmt: skip
            with self.log_file.open("ab") as log:
                self.process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env={**os.environ, **self.environment},
                )
            give_up_at = time.monotonic() + START_SECONDS_MAX
            while not (address := _read_if_there(address_file)):
                if self.process.poll() is not None or time.monotonic() > give_up_at:
                    self.kill()
                    raise RuntimeError(f"the server did not start:\n{self.log_file.read_text()}")
                time.sleep(0.01)
            self.address = address

    def stop(self) -> int:
        """Stop the server with SIGTERM; returns its exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(STOP_SECONDS_MAX)

    def kill(self) -> None:
        """Kill the server with SIGKILL, like a crash."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()


def _read_if_there(file: Path) -> str:
    with contextlib.suppress(FileNotFoundError):
        return file.read_text()
    return ""


@contextlib.contextmanager
def running_server(*options: str, data_dir: Path | None = None) -> Iterator[ServerProcess]:
    """A server on a free port of 127.0.0.1, in a temporary directory unless one is given.

    `options` are flags of `queueber serve`. Its `address` is what `queueber.connect` takes.
    """
    with contextlib.ExitStack() as stack:
        if data_dir is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="queueber-"))
            data_dir = Path(folder) / "data"
        server = ServerProcess(data_dir, options)
        server.start()
        try:
            yield server
        finally:
            if server.process is not None and server.process.poll() is None:
                server.stop()
