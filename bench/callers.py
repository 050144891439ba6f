"""What it costs to know who calls: the server's CPU time for a call, and for a new connection.

    python -m bench.callers

Servers without and with protection are measured in turns, so that both meet the same machine. Times
are CPU time of the server process, which other programs disturb less than the clock.
"""

import argparse
import asyncio
import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from queueber import connect_async
from queueber.auth.token_file import Entry
from queueber.auth.token_writing import change_token_file
from queueber.auth.tokens import new_token
from queueber.model import Grant
from queueber.testing import ServerProcess, running_server

_CALLERS = 32
_ROUNDS = 5
_CALLS = 8000
_CONNECTIONS = 100


def _cpu_seconds(server: ServerProcess) -> float:
    """Of the main thread, which answers all calls; the kernel counts it in nanoseconds."""
    assert server.process is not None
    return int(Path(f"/proc/{server.process.pid}/schedstat").read_text().split()[0]) / 1e9


async def _calls(address: str, token: str | None) -> None:
    """Small calls that do hardly anything else: statistics of a queue."""
    async with connect_async(address, token=token) as client:
        queue = client.queue("bench-queue")

        async def caller() -> None:
            for _ in range(_CALLS // _CALLERS):
                await queue.stats()

        await asyncio.gather(*(caller() for _ in range(_CALLERS)))


async def _connections(address: str, token: str | None) -> None:
    for _ in range(_CONNECTIONS):
        async with connect_async(address, token=token):
            pass


def _microseconds(server: ServerProcess, token: str | None) -> tuple[float, float]:
    """CPU time of the server for one call, and for one connection."""
    began = _cpu_seconds(server)
    asyncio.run(_calls(server.address, token))
    called = _cpu_seconds(server)
    asyncio.run(_connections(server.address, token))
    ended = _cpu_seconds(server)
    return (called - began) / _CALLS * 1e6, (ended - called) / _CONNECTIONS * 1e6


@contextlib.contextmanager
def _servers() -> Iterator[dict[str, tuple[ServerProcess, str | None]]]:
    with tempfile.TemporaryDirectory(prefix="queueber-") as folder:
        file = Path(folder) / "tokens.toml"
        token, token_id, sha256 = new_token()
        # A caller as programs have it: patterns, and not for everything.
        grants = (Grant("dba", ("bench-*", "other-*"), ("log/*",)),)
        change_token_file(file, lambda _: [Entry("bench", grants, token_id, sha256)])
        protected = ("--tokens-file", str(file))
        quotas = ("--caller-calls-per-second-max", "1000000000", "--caller-bytes-per-second-max",
                  "1000000000000")  # fmt: skip
        with (
            running_server() as plain,
            running_server(*protected) as known,
            running_server(*protected, *quotas) as counted,
        ):
            yield {
                "not protected": (plain, None),
                "token": (known, token),
                "token and quotas": (counted, token),
            }


def main() -> None:
    argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "").parse_args()
    measured: dict[str, list[tuple[float, float]]] = {}
    with _servers() as servers:
        for _ in range(_ROUNDS):
            for name, (server, token) in servers.items():
                measured.setdefault(name, []).append(_microseconds(server, token))
    print(f"{'server':18} {'us a call':>10} {'us a connection':>16}   (CPU, median of {_ROUNDS})")
    for name, rounds in measured.items():
        call, connection = (median(each[at] for each in rounds) for at in (0, 1))
        print(f"{name:18} {call:10.1f} {connection:16.0f}")


if __name__ == "__main__":
    main()
