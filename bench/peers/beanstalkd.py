"""beanstalkd: a work queue with a log that it syncs at every write."""

import contextlib
import socket
import subprocess
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import greenstalk

from bench.debian import find_program
from bench.peers.peer import LEASE_SECONDS, Client, Server, Taken
from bench.peers.processes import (
    LOOPBACK,
    running_on_a_port,
)

_JOB_BYTES_MAX = 16 * 1024 * 1024
_WAIT_SECONDS = 1
"""Wait for the first job; the protocol has whole seconds only."""
_FILL_ITEMS_MAX = 1000
"""Jobs in one write: their answers must fit into the socket's buffers until they are read."""


class Beanstalkd:
    name = "beanstalkd"
    durability = "yes"
    notes = "no batches; a call that finds nothing waits a second"
    packages = ("beanstalkd",)
    library = "greenstalk"
    is_blocking = True

    def version(self) -> str:
        done = subprocess.run([_server(), "-v"], check=True, capture_output=True, text=True)
        return done.stdout.split()[-1]

    def running(self, folder: Path) -> contextlib.AbstractContextManager[Server]:
        return running_on_a_port(
            folder,
            "beanstalkd",
            lambda port, data_dir: [
                _server(), "-b", str(data_dir), "-f0", "-z", str(_JOB_BYTES_MAX),
                "-l", LOOPBACK, "-p", str(port),
            ],
        )  # fmt: skip

    @contextlib.asynccontextmanager
    async def connect(self, address: str, callers: int, queue: str) -> AsyncIterator[list[Client]]:
        with contextlib.ExitStack() as stack:
            yield [
                _Client(
                    stack.enter_context(
                        greenstalk.Client(
                            (LOOPBACK, int(address)), encoding=None, use=queue, watch=queue
                        )
                    )
                )
                for _ in range(callers)
            ]

    async def fill(self, address: str, queue: str, contents: bytes, count: int) -> None:
        """Send all before reading answers; the server still syncs after each."""
        put = b"put 0 0 %d %d\r\n%b\r\n" % (LEASE_SECONDS, len(contents), contents)
        with (
            socket.create_connection((LOOPBACK, int(address))) as connection,
            connection.makefile("rb") as answers,
        ):
            connection.sendall(b"use %b\r\n" % queue.encode())
            answers.readline()
            for start in range(0, count, _FILL_ITEMS_MAX):
                items = min(_FILL_ITEMS_MAX, count - start)
                connection.sendall(put * items)
                for _ in range(items):
                    answer = answers.readline()
                    if not answer.startswith(b"INSERTED"):
                        raise RuntimeError(f"beanstalkd answered {answer!r} to a put")


class _Client:
    """A client that blocks its thread."""

    def __init__(self, client: "greenstalk.Client[bytes]") -> None:
        self._client = client

    async def add(self, contents: Sequence[bytes]) -> None:
        for each in contents:
            self._client.put(each, ttr=LEASE_SECONDS)

    async def take(self, count: int) -> Taken:
        jobs: list[greenstalk.Job[bytes]] = []
        with contextlib.suppress(greenstalk.TimedOutError):
            while len(jobs) < count:
                jobs.append(self._client.reserve(timeout=0 if jobs else _WAIT_SECONDS))
        return Taken([job.body for job in jobs], jobs)

    async def ack(self, taken: Taken) -> None:
        for job in taken.token:
            self._client.delete(job)


def _server() -> str:
    return find_program(
        "beanstalkd", title="beanstalkd", package="beanstalkd",
        otherwise="leave 'beanstalkd' out of --peers",
    )  # fmt: skip
