"""Redis Streams: a log with a consumer group, synced before every reply."""

import contextlib
import subprocess
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from redis.asyncio import BlockingConnectionPool, Redis
from redis.exceptions import ResponseError

from bench.debian import find_program
from bench.peers.peer import WAIT_SECONDS, Client, Server, Taken
from bench.peers.processes import (
    LOOPBACK,
    running_on_a_port,
)

_GROUP = "workers"
_WAIT_MS = round(WAIT_SECONDS * 1000)
FIELD = b"c"
NEW = ">"
"""Messages that no consumer of the group has got yet."""
_FILL_SCRIPT = """
for _ = 1, ARGV[2] do
    redis.call('XADD', KEYS[1], '*', ARGV[3], ARGV[1])
end
"""
_FILL_ITEMS_MAX = 10_000
"""Items in one script, which cannot be interrupted."""


class RedisServer:
    name = "Redis Streams"
    durability = "yes"
    notes = "everything is held in memory"
    packages = ("redis-server",)
    library = "redis"

    def version(self) -> str:
        done = subprocess.run([_server(), "--version"], check=True, capture_output=True, text=True)
        return done.stdout.split("v=")[1].split()[0]

    def running(self, folder: Path) -> contextlib.AbstractContextManager[Server]:
        return running_on_a_port(folder, "redis", _command)


class RedisStreams(RedisServer):
    is_blocking = False

    @contextlib.asynccontextmanager
    async def connect(self, address: str, callers: int, queue: str) -> AsyncIterator[list[Client]]:
        async with connected(address, callers) as redis:
            await create_group(redis, queue, _GROUP)
            yield [_Client(redis, queue, f"caller-{caller}") for caller in range(callers)]

    async def fill(self, address: str, queue: str, contents: bytes, count: int) -> None:
        """With a script in the server, unsynced until its end."""
        async with connected(address, 1) as redis:
            await create_group(redis, queue, _GROUP)
            await redis.config_set("appendfsync", "no")
            add = redis.register_script(_FILL_SCRIPT)
            for start in range(0, count, _FILL_ITEMS_MAX):
                items = min(_FILL_ITEMS_MAX, count - start)
                await add(keys=[queue], args=[contents, items, FIELD])
            await redis.config_set("appendfsync", "always")
            # The first write syncs all earlier ones; it counts for the fill.
            await redis.set(f"{queue}:filled", count)


def _command(port: int, data_dir: Path) -> list[str]:
    settings = {
        "bind": LOOPBACK,
        "port": str(port),
        "dir": str(data_dir),
        "appendonly": "yes",
        "appendfsync": "always",
        # A rewrite during a round would distort it. This favours Redis, whose
        # log only grows meanwhile.
        "auto-aof-rewrite-percentage": "0",
        "save": "",
    }
    command = [_server()]
    for name, value in settings.items():
        command += [f"--{name}", value]
    return command


class _Client:
    def __init__(self, redis: "Redis", queue: str, consumer: str) -> None:
        self._redis = redis
        self._queue = queue
        self._consumer = consumer

    async def add(self, contents: Sequence[bytes]) -> None:
        await append(self._redis, self._queue, contents)

    async def take(self, count: int) -> Taken:
        answer: Any = await self._redis.xreadgroup(
            _GROUP, self._consumer, {self._queue: NEW}, count=count, block=_WAIT_MS
        )
        entries = answer[0][1] if answer else []
        return Taken([fields[FIELD] for _, fields in entries], [entry for entry, _ in entries])

    async def ack(self, taken: Taken) -> None:
        pipeline = self._redis.pipeline(transaction=False)
        pipeline.xack(self._queue, _GROUP, *taken.token)
        pipeline.xdel(self._queue, *taken.token)  # acknowledged entries stay in a stream
        await pipeline.execute()


def _server() -> str:
    return find_program(
        "redis-server", title="Redis", package="redis-server",
        otherwise="leave 'redis' out of --peers",
    )  # fmt: skip


@contextlib.asynccontextmanager
async def connected(address: str, callers: int) -> AsyncIterator["Redis"]:
    # Protocol 3 has other forms of answers, and nothing that a queue needs.
    pool = BlockingConnectionPool(
        host=LOOPBACK, port=int(address), max_connections=callers, timeout=None, protocol=2
    )
    async with Redis(connection_pool=pool) as redis:
        yield redis
    await pool.aclose()


async def create_group(redis: "Redis", stream: str, group: str) -> None:
    """Create a group that begins with the first entry, and the stream, if they are missing."""
    try:
        await redis.xgroup_create(stream, group, id="0", mkstream=True)
    except ResponseError as error:
        if "BUSYGROUP" not in str(error):  # it is there already
            raise


async def append(redis: "Redis", stream: str, contents: Sequence[bytes]) -> None:
    """Several entries go in one pipeline: each is a command, and all are synced together."""
    if len(contents) == 1:
        await redis.xadd(stream, {FIELD: contents[0]})
        return
    pipeline = redis.pipeline(transaction=False)
    for each in contents:
        pipeline.xadd(stream, {FIELD: each})
    await pipeline.execute()
