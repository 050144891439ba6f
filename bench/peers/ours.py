"""Queueber with its defaults: the asyncio client, one connection for all callers."""

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from pathlib import Path

from bench.peers.peer import LEASE_SECONDS, WAIT_SECONDS, Client, Server, Taken
from queueber import AsyncQueue, connect_async
from queueber.testing import running_server
from queueber.version import VERSION

_FILL_ITEMS, _FILLERS = 1000, 4


class QueueberServer:
    name = "Queueber"
    durability = "yes, each answer after a sync"
    notes = ""
    packages: Sequence[str] = ()
    library = "queueber"

    def version(self) -> str:
        return VERSION

    @contextlib.contextmanager
    def running(self, folder: Path) -> Iterator[Server]:
        with (
            tempfile.TemporaryDirectory(dir=folder) as own,
            running_server("--durability", "sync", data_dir=Path(own) / "data") as server,
        ):
            assert server.process is not None
            process_id = server.process.pid
            yield Server(server.address, lambda: [process_id])


class Queueber(QueueberServer):
    is_blocking = False

    @contextlib.asynccontextmanager
    async def connect(self, address: str, callers: int, queue: str) -> AsyncIterator[list[Client]]:
        async with connect_async(address) as client:
            yield [_Client(client.queue(queue)) for _ in range(callers)]

    async def fill(self, address: str, queue: str, contents: bytes, count: int) -> None:
        async with connect_async(address) as client:
            filled, calls = client.queue(queue), range(0, count, _FILL_ITEMS)

            async def fill_some(starts: Iterable[int]) -> None:
                for start in starts:
                    await filled.add([contents] * min(_FILL_ITEMS, count - start))

            async with asyncio.TaskGroup() as group:
                for number in range(_FILLERS):
                    group.create_task(fill_some(calls[number::_FILLERS]))


class _Client:
    def __init__(self, queue: AsyncQueue) -> None:
        self._queue = queue

    async def add(self, contents: Sequence[bytes]) -> None:
        await self._queue.add(contents)

    async def take(self, count: int) -> Taken:
        lease = await self._queue.poll(count, lease=LEASE_SECONDS, wait=WAIT_SECONDS)
        return Taken([item.contents for item in lease], lease)

    async def ack(self, taken: Taken) -> None:
        await taken.token.remove()
