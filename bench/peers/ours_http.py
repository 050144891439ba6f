"""Queueber through its gateway: HTTP with JSON, a connection for each caller that is kept open."""

import asyncio
import base64
import contextlib
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

from bench.peers.ours import Queueber
from bench.peers.peer import LEASE_SECONDS, WAIT_SECONDS, Client, Server, Taken
from bench.peers.processes import process_ids
from queueber.limits import SECOND_MS
from tests.support.http import running_gateway


class QueueberHttp(Queueber):
    library = "queueber"

    def __init__(self, processes: int) -> None:
        self._processes = processes
        self.name = f"Queueber, HTTP, {processes} process{'es' if processes > 1 else ''}"

    @contextlib.contextmanager
    def running(self, folder: Path) -> Iterator[Server]:
        with (
            super().running(folder) as server,
            running_gateway(server.address, "--processes", str(self._processes)) as gateway,
        ):
            yield Server(
                gateway.address,
                lambda: [*server.process_ids(), *process_ids(gateway.process.pid)],
            )

    @contextlib.asynccontextmanager
    async def connect(self, address: str, callers: int, queue: str) -> AsyncIterator[list[Client]]:
        host, _, port = address.rpartition(":")
        async with contextlib.AsyncExitStack() as stack:
            clients: list[Client] = []
            for _ in range(callers):
                reader, writer = await asyncio.open_connection(host, int(port))
                stack.callback(writer.close)
                clients.append(_HttpClient(reader, writer, f"/v1/queues/{queue}"))
            yield clients


class _HttpClient:
    """As little of an HTTP client as there can be: what is measured is the gateway."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._path = path

    async def add(self, contents: Sequence[bytes]) -> None:
        items = [{"contents": base64.b64encode(each).decode()} for each in contents]
        await self._ask("items", {"items": items})

    async def take(self, count: int) -> Taken:
        asked = {
            "items_max": count,
            "lease_ms": LEASE_SECONDS * SECOND_MS,
            "wait_ms": round(WAIT_SECONDS * SECOND_MS),
        }
        answer = json.loads(await self._ask("poll", asked))
        items = answer["items"]
        held = {"lease": answer["lease"], "ids": [item["id"] for item in items]}
        return Taken([base64.b64decode(item["contents"]) for item in items], held)

    async def ack(self, taken: Taken) -> None:
        await self._ask("remove", taken.token)

    async def _ask(self, verb: str, body: object) -> bytes:
        data = json.dumps(body).encode()
        self._writer.write(
            f"POST {self._path}/{verb} HTTP/1.1\r\nhost: localhost\r\n"
            "content-type: application/json\r\n"
            f"content-length: {len(data)}\r\n\r\n".encode()
            + data
        )
        head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
        answer = await self._reader.readexactly(length)
        if not head.startswith(b"http/1.1 2"):
            raise RuntimeError(f"{head!r} {answer!r}")
        return answer
