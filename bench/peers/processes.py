"""Starts and ends servers as child processes, with all processes that they start."""

import contextlib
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.peers.peer import Server

LOOPBACK = "127.0.0.1"

_START_SECONDS_MAX = 60.0
_STOP_SECONDS_MAX = 30.0
_LOG_CHARACTERS_MAX = 4000
"""Bytes of a log's end to print if a server did not start."""


def free_ports(count: int) -> list[int]:
    """Different free ports of the loopback interface."""
    with contextlib.ExitStack() as stack:
        listeners = [stack.enter_context(socket.socket()) for _ in range(count)]
        for listener in listeners:
            listener.bind((LOOPBACK, 0))
        return [listener.getsockname()[1] for listener in listeners]


def port_answers(port: int) -> bool:
    try:
        with socket.create_connection((LOOPBACK, port), timeout=1.0):
            return True
    except OSError:
        return False


@contextlib.contextmanager
def data_folder(parent: Path, name: str) -> Iterator[Path]:
    """A directory for the data and log of one server, deleted afterwards."""
    with tempfile.TemporaryDirectory(prefix=f"{name}-", dir=parent.resolve()) as path:
        yield Path(path)


@contextlib.contextmanager
def running_process(
    command: Sequence[str],
    folder: Path,
    is_ready: Callable[[], bool],
    *,
    environment: Mapping[str, str] | None = None,
) -> Iterator[int]:
    """Yields the id of a started process; ends it and its descendants afterwards."""
    name = Path(command[0]).name
    log_file = folder / f"{name}.log"
    with log_file.open("wb") as log:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            # A keyboard interrupt goes to the benchmark, which then ends its servers.
            start_new_session=True,
        )
        try:
            _wait_until_ready(name, process, is_ready, log_file)
            yield process.pid
        finally:
            _stop(process)


@dataclass(frozen=True, slots=True)
class _Process:
    parent: int
    session: int
    started_at: int


def process_ids(root: int) -> list[int]:
    """A process, its descendants, and the other processes of its session."""
    return sorted(process_id for process_id, _ in _family(root))


def _family(root: int) -> set[tuple[int, int]]:
    """Process ids with their start times, because ids are reused."""
    alive = _alive()
    children: dict[int, list[int]] = {}
    for process_id, process in alive.items():
        children.setdefault(process.parent, []).append(process_id)
    found = [each for each, process in alive.items() if root in (each, process.session)]
    for process_id in found:  # grows on the way
        found += [child for child in children.get(process_id, ()) if child not in found]
    return {(process_id, alive[process_id].started_at) for process_id in found}


def _alive() -> dict[int, _Process]:
    alive = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        with contextlib.suppress(OSError):  # it may end meanwhile
            # The name is the second field, in brackets, and may contain anything.
            state, *numbers = (folder / "stat").read_text().rpartition(")")[2].split()
            if state not in "ZX":
                alive[int(folder.name)] = _Process(
                    parent=int(numbers[0]), session=int(numbers[2]), started_at=int(numbers[18])
                )
    return alive


def _wait_until_ready(
    name: str, process: "subprocess.Popen[bytes]", is_ready: Callable[[], bool], log_file: Path
) -> None:
    give_up_at = time.monotonic() + _START_SECONDS_MAX
    while True:
        # Another process may answer if the port was taken.
        is_answered = is_ready()
        if process.poll() is not None or time.monotonic() > give_up_at:
            log = log_file.read_text(errors="replace")[-_LOG_CHARACTERS_MAX:]
            raise SystemExit(f"{name} did not start:\n{log}")
        if is_answered:
            return
        time.sleep(0.05)


def _stop(process: "subprocess.Popen[bytes]") -> None:
    """Send SIGTERM first, so that servers clean up; then kill the rest."""
    family = _family(process.pid)
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_STOP_SECONDS_MAX)
    family |= _family(process.pid)
    give_up_at = time.monotonic() + _STOP_SECONDS_MAX
    while left := _left_of(family):
        for process_id in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process_id, signal.SIGKILL)
        if time.monotonic() > give_up_at:
            raise RuntimeError(f"processes {left} do not end")
        time.sleep(0.01)
    process.wait()


def _left_of(family: set[tuple[int, int]]) -> list[int]:
    alive = _alive()
    return [
        process_id
        for process_id, started_at in family
        if process_id in alive and alive[process_id].started_at == started_at
    ]


@contextlib.contextmanager
def running_on_a_port(
    folder: Path, name: str, command: Callable[[int, Path], Sequence[str]]
) -> Iterator[Server]:
    """A server of one process; `command` makes its command line for a port and a data directory.
    Its address is the port."""
    (port,) = free_ports(1)
    with (
        data_folder(folder, name) as data_dir,
        running_process(command(port, data_dir), data_dir, lambda: port_answers(port)) as root,
    ):
        yield Server(str(port), lambda: process_ids(root))
