"""A server, a gateway of one process, and how long each took to start."""

import compileall
import contextlib
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import queueber
from bench.resident import memory_mb
from faults.grpc.frames import (
    END_HEADERS,
    HEADERS,
    PREFACE,
    SETTINGS,
    frame,
    head,
    message,
)
from queueber.config import split_address
from queueber.testing import running_server
from tests.support.grpc import running_grpc
from tests.support.http import GatewayProcess

_HEALTH = b"/grpc.health.v1.Health/Check"
_SECONDS_MAX = 30.0
_TURN_SECONDS = 0.002


@dataclass(slots=True)
class Running:
    gateway: GatewayProcess
    address: str
    gateway_seconds: float
    """From before its process was made to its answer about health."""
    both_seconds: float
    """The same from before the server was, on which it waits."""
    first_mb: float
    """The gateway's memory then."""

    @property
    def highest_mb(self) -> float:
        return memory_mb(self.gateway.process.pid, "VmHWM")


@contextmanager
def running(folder: Path) -> Iterator[Running]:
    # As an installed package is: else it would be compiled at each start, if Python may not write.
    compileall.compile_dir(Path(queueber.__file__).parent, quiet=1)
    folder.mkdir(exist_ok=True)
    first = time.perf_counter()
    with running_server(data_dir=folder / "data") as server:
        begun = time.perf_counter()
        with running_grpc(server.address) as (gateway, address):
            wait_healthy(address)
            now = time.perf_counter()
            first_mb = memory_mb(gateway.process.pid)
            yield Running(gateway, address, now - begun, now - first, first_mb)


def start_seconds(folder: Path, starts: int) -> tuple[list[float], list[float]]:
    """Of the gateway, and of the server with it, each on a directory of its own; the first start,
    which reads our files from the disk, does not count."""
    found = []
    for at in range(starts + 1):
        with running(folder / f"start-{at}") as of:
            found.append((of.gateway_seconds, of.both_seconds))
    return [each for each, _ in found[1:]], [each for _, each in found[1:]]


def wait_healthy(address: str) -> None:
    """Until the port answers: by hand, as grpcio takes a while to load, and to try again."""
    give_up_at = time.perf_counter() + _SECONDS_MAX
    asked = frame(HEADERS, END_HEADERS, 1, head(b"", path=_HEALTH)) + message(1, b"", is_last=True)
    while time.perf_counter() < give_up_at:
        with contextlib.suppress(OSError), socket.create_connection(split_address(address)) as made:
            made.settimeout(_SECONDS_MAX)
            made.sendall(PREFACE + frame(SETTINGS, 0, 0) + asked)
            received = b""
            while b"grpc-status" not in received:
                if not (more := made.recv(1 << 16)):
                    raise ConnectionResetError
                received += more
            return
        time.sleep(_TURN_SECONDS)
    raise TimeoutError(f"nothing answers at {address}")


def shown_seconds(found: list[float]) -> str:
    return f"{median(found):.2f} s ({min(found):.2f} to {max(found):.2f} in {len(found)} starts)"
