"""NATS JetStream: a file stream that deletes acknowledged messages, and a pull consumer."""

import asyncio
import contextlib
import subprocess
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import nats
from nats.aio.client import Client as Connection
from nats.js import JetStreamContext
from nats.js.api import AckPolicy, ConsumerConfig, RetentionPolicy, StorageType, StreamConfig

from bench.debian import find_program
from bench.peers.peer import LEASE_SECONDS, WAIT_SECONDS, Client, Server, Taken
from bench.peers.processes import (
    LOOPBACK,
    running_on_a_port,
)

_CONSUMER = "workers"
_FILL_ITEMS_MAX = 10_000
"""Messages sent at a time; then the server has read all."""
_SETTLE_SECONDS_MAX = 120.0
"""Seconds until the last filled message is in the stream."""


class NatsJetStream:
    name = "NATS JetStream"
    # Debian's 2.9 has no setting for it; `sync_interval: always` came with 2.10.
    durability = "no: every 2 min"
    notes = "survives a killed server, not a lost machine; acks are not answered"
    packages = ("nats-server",)
    library = "nats-py"
    is_blocking = False

    def version(self) -> str:
        done = subprocess.run([_server(), "--version"], check=True, capture_output=True, text=True)
        return done.stdout.split()[-1].removeprefix("v")

    def running(self, folder: Path) -> contextlib.AbstractContextManager[Server]:
        return running_on_a_port(
            folder,
            "nats",
            lambda port, data_dir: [
                _server(), "--addr", LOOPBACK, "--port", str(port),
                "--jetstream", "--store_dir", str(data_dir),
            ],
        )  # fmt: skip

    @contextlib.asynccontextmanager
    async def connect(self, address: str, callers: int, queue: str) -> AsyncIterator[list[Client]]:
        async with _connected(address) as connection:
            context = connection.jetstream()
            await _create(context, queue)
            yield [
                _Client(context, queue, await context.pull_subscribe_bind(_CONSUMER, stream=queue))
                for _ in range(callers)
            ]

    async def fill(self, address: str, queue: str, contents: bytes, count: int) -> None:
        """With messages that ask for no answer; the stream stores them all the same."""
        async with _connected(address) as connection:
            context = connection.jetstream()
            await _create(context, queue)
            goal = count + (await context.stream_info(queue)).state.messages
            for start in range(0, count, _FILL_ITEMS_MAX):
                for _ in range(min(_FILL_ITEMS_MAX, count - start)):
                    await connection.publish(queue, contents)
                await connection.flush()
            async with asyncio.timeout(_SETTLE_SECONDS_MAX):
                while True:
                    if (await context.stream_info(queue)).state.messages >= goal:
                        break
                    await asyncio.sleep(0.01)


class _Client:
    def __init__(
        self,
        context: JetStreamContext,
        queue: str,
        subscription: JetStreamContext.PullSubscription,
    ) -> None:
        self._context = context
        self._queue = queue
        self._subscription = subscription

    async def add(self, contents: Sequence[bytes]) -> None:
        publish = self._context.publish
        if len(contents) == 1:
            await publish(self._queue, contents[0])
        else:
            await asyncio.gather(*(publish(self._queue, each) for each in contents))

    async def take(self, count: int) -> Taken:
        try:
            messages = await self._subscription.fetch(count, timeout=WAIT_SECONDS)
        except TimeoutError:
            messages = []
        return Taken([message.data for message in messages], messages)

    async def ack(self, taken: Taken) -> None:
        for message in taken.token:
            await message.ack()


def _server() -> str:
    return find_program(
        "nats-server", title="NATS", package="nats-server", otherwise="leave 'nats' out of --peers"
    )


@contextlib.asynccontextmanager
async def _connected(address: str) -> AsyncIterator[Connection]:
    connection = await nats.connect(f"nats://{LOOPBACK}:{address}", allow_reconnect=False)
    try:
        yield connection
        await connection.flush()  # acks may still be on their way
    finally:
        await connection.close()


async def _create(context: JetStreamContext, queue: str) -> None:
    await context.add_stream(
        StreamConfig(
            name=queue,
            subjects=[queue],
            retention=RetentionPolicy.WORK_QUEUE,
            storage=StorageType.FILE,
        )
    )
    await context.add_consumer(
        queue,
        ConsumerConfig(
            durable_name=_CONSUMER,
            ack_policy=AckPolicy.EXPLICIT,
            ack_wait=LEASE_SECONDS,
            max_ack_pending=-1,  # the default limits callers to a thousand
        ),
    )
