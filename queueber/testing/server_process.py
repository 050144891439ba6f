"""A real server for tests, in a process of its own: it runs as long as a `with` block."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from queueber.client.arguments.values import to_ms
from queueber.errors import InvalidArgument
from queueber.testing.clock_link import ADVANCE_MS_MAX, ClockLink

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
    has_movable_clock: bool = False
    advanced_ms: int = 0
    """How far the clock of the server was moved; a restart keeps it."""
    _clock: ClockLink | None = None

    @property
    def log_file(self) -> Path:
        """The server's log, one JSON object a line."""
        return self.data_dir.with_name(self.data_dir.name + ".log")

    def start(self) -> None:
        """Start the server, or restart it with the same data and port."""
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="queueber-"))
            address_file = Path(folder) / "address"
            command = [*self.command, "serve"]
            passed: tuple[int, ...] = ()
            if self.has_movable_clock:
                self.forget()
                self._clock, theirs = ClockLink.pair()
                stack.callback(theirs.close)
                command = _with_clock(self.advanced_ms, theirs)
                passed = (theirs.fileno(),)
            command += [
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
                    pass_fds=passed,
                )
            give_up_at = time.monotonic() + START_SECONDS_MAX
            while not (address := _read_if_there(address_file)):
                if self.process.poll() is not None or time.monotonic() > give_up_at:
                    self.kill()
                    raise RuntimeError(f"the server did not start:\n{self.log_file.read_text()}")
                time.sleep(0.01)
            self.address = address

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def stop(self) -> int:
        """Stop the server with SIGTERM; returns its exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self._wait_ended(STOP_SECONDS_MAX)

    def kill(self) -> None:
        """Kill the server with SIGKILL, like a crash."""
        assert self.process is not None
        self.process.kill()
        self._wait_ended(None)

    def _wait_ended(self, seconds: float | None) -> int:
        assert self.process is not None
        code = self.process.wait(seconds)
        self.forget()
        return code

    def forget(self) -> None:
        """Close what a server needs that has ended by itself."""
        if self._clock is not None:
            self._clock.close()

    # --- time -------------------------------------------------------------------------------------

    def advance(
        self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0
    ) -> datetime:
        """Move the clock of the server forward; returns what it shows then.

        When this returns, what became due is done: delays and pauses have ended, leases have
        expired, schedules have added their items, what is kept for a time is gone. Calls that wait
        do so as long as before, and so do the programs that called.
        """
        if not self.has_movable_clock or self._clock is None:
            raise RuntimeError(
                "the clock of this server cannot be moved; start it with "
                "running_server(movable_clock=True)"
            )
        try:
            length = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
        except (ValueError, TypeError, OverflowError) as error:
            raise InvalidArgument(
                f"advance: the lengths are not numbers of time: {error}"
            ) from None
        ms = to_ms("advance", length, ADVANCE_MS_MAX - self.advanced_ms)
        self._clock.advance(ms)
        self.advanced_ms += ms
        return self.now()

    def now(self) -> datetime:
        """The time of the server, in UTC: that of this machine, and what it was advanced by."""
        return datetime.now(UTC) + timedelta(milliseconds=self.advanced_ms)


def _with_clock(advanced_ms: int, theirs: socket.socket) -> list[str]:
    return [
        sys.executable, "-m", "queueber.testing.clock_server",
        "--clock-fd", str(theirs.fileno()),
        "--advanced-ms", str(advanced_ms),
    ]  # fmt: skip


def _read_if_there(file: Path) -> str:
    with contextlib.suppress(FileNotFoundError):
        return file.read_text()
    return ""


@contextlib.contextmanager
def running_server(
    *options: str, data_dir: Path | str | None = None, movable_clock: bool = False
) -> Iterator[ServerProcess]:
    """A server on a free port of 127.0.0.1, in a temporary directory unless one is given.

    `options` are flags of `queueber serve`. Its `address` is what `queueber.connect` takes. With
    `movable_clock` a test moves its time forward: `server.advance(hours=3)`.
    """
    with contextlib.ExitStack() as stack:
        if data_dir is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="queueber-"))
            data_dir = Path(folder) / "data"
        server = ServerProcess(Path(data_dir), options, has_movable_clock=movable_clock)
        server.start()
        try:
            yield server
        finally:
            if server.is_running:
                server.stop()
            server.forget()
