"""NATS JetStream: a file stream that deletes acknowledged messages, and a pull consumer.

It is measured twice. Debian's server syncs every two minutes, and has no setting for it. A newer
one, which is built here if Go is at hand, syncs every message, or every batch of messages that is
published as a whole.
"""

import asyncio
import contextlib
import json
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from uuid import uuid4

import nats
from nats.aio.client import Client as Connection
from nats.aio.msg import Msg
from nats.js import JetStreamContext
from nats.js.api import (
    AckPolicy,
    ConsumerConfig,
    Header,
    RetentionPolicy,
    StorageType,
    StreamConfig,
)

from bench.debian import find_program
from bench.peers.go_programs import built_program, find_or_build
from bench.peers.peer import LEASE_SECONDS, WAIT_SECONDS, Client, Server, Taken
from bench.peers.processes import (
    LOOPBACK,
    running_on_a_port,
)

_CONSUMER = "workers"
_FILL_ITEMS_MAX = 10_000
"""Messages sent at a time; then the server has read all."""
_BATCH_ITEMS_MAX = 1000
"""Messages that the server takes as one batch."""
_SETTLE_SECONDS_MAX = 120.0
"""Seconds until the last filled message is in the stream."""

_ANSWER_SECONDS_MAX = 60.0

_MODULE = "github.com/nats-io/nats-server/v2"
_SYNCED_VERSION = "v2.15.2"


@dataclass
class NatsServer:
    name: str
    durability: str
    notes: str
    packages: Sequence[str]
    is_synced: bool
    library: str = "nats-py"

    def version(self) -> str:
        command = [self._server(), "--version"]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return done.stdout.split()[-1].removeprefix("v")

    def _server(self) -> str:
        if self.is_synced:
            return str(find_or_build("nats-server", _MODULE, _SYNCED_VERSION))
        return find_program(
            "nats-server", title="NATS", package="nats-server",
            otherwise="leave 'nats' out of --peers",
        )  # fmt: skip

    def running(self, folder: Path) -> contextlib.AbstractContextManager[Server]:
        return running_on_a_port(folder, "nats", self._command)

    def _command(self, port: int, data_dir: Path) -> list[str]:
        jetstream = {"store_dir": str(data_dir)}
        if self.is_synced:
            jetstream["sync_interval"] = "always"
        settings = data_dir / "nats.conf"  # JSON is also valid there
        settings.write_text(json.dumps({"host": LOOPBACK, "port": port, "jetstream": jetstream}))
        return [self._server(), "--config", str(settings)]


@dataclass
class NatsJetStream(NatsServer):
    is_blocking: bool = False

    @contextlib.asynccontextmanager
    async def connect(self, address: str, callers: int, queue: str) -> AsyncIterator[list[Client]]:
        async with connected(address) as connection:
            context = connection.jetstream()
            await self._create(context, queue)
            publish = publish_batch if self.is_synced else publish_each
            yield [
                _Client(
                    partial(publish, context, connection, queue),
                    _ack_answered if self.is_synced else _ack_each,
                    await context.pull_subscribe_bind(_CONSUMER, stream=queue),
                )
                for _ in range(callers)
            ]

    async def fill(self, address: str, queue: str, contents: bytes, count: int) -> None:
        """In batches, or with messages that ask for no answer; the stream stores them all."""
        async with connected(address) as connection:
            context = connection.jetstream()
            await self._create(context, queue)
            if self.is_synced:
                for start in range(0, count, _BATCH_ITEMS_MAX):
                    batch = [contents] * min(_BATCH_ITEMS_MAX, count - start)
                    await publish_batch(context, connection, queue, batch)
                return
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

    async def _create(self, context: JetStreamContext, queue: str) -> None:
        await context.add_stream(
            StreamConfig(
                name=queue,
                subjects=[queue],
                retention=RetentionPolicy.WORK_QUEUE,
                storage=StorageType.FILE,
                allow_atomic=True if self.is_synced else None,  # older servers do not know it
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


UNSYNCED = NatsJetStream(
    name="NATS JetStream",
    # Debian's 2.9 has no setting for it; `sync_interval: always` came with 2.10.
    durability="no: every 2 min",
    notes="survives a killed server, not a lost machine; acks are not answered",
    packages=("nats-server",),
    is_synced=False,
)
SYNCED = NatsJetStream(
    name="NATS JetStream, synced",
    durability="yes",
    notes="sync_interval: always; several items in a call are an atomic batch; acks are answered",
    packages=(),
    is_synced=True,
)


def is_synced_one_built() -> bool:
    return built_program("nats-server", _SYNCED_VERSION) is not None


class _Client:
    def __init__(
        self,
        publish: Callable[[Sequence[bytes]], Awaitable[None]],
        acknowledge: Callable[[Sequence[Msg]], Awaitable[None]],
        subscription: JetStreamContext.PullSubscription,
    ) -> None:
        self._publish = publish
        self._acknowledge = acknowledge
        self._subscription = subscription

    async def add(self, contents: Sequence[bytes]) -> None:
        await self._publish(contents)

    async def take(self, count: int) -> Taken:
        try:
            messages = await self._subscription.fetch(count, timeout=WAIT_SECONDS)
        except TimeoutError:
            messages = []
        return Taken([message.data for message in messages], messages)

    async def ack(self, taken: Taken) -> None:
        await self._acknowledge(taken.token)


async def _ack_each(messages: Sequence[Msg]) -> None:
    for message in messages:
        await message.ack()


async def _ack_answered(messages: Sequence[Msg]) -> None:
    """The server deletes a message, which it syncs, before it answers."""
    await asyncio.gather(*(message.ack_sync(_ANSWER_SECONDS_MAX) for message in messages))


async def publish_each(
    context: JetStreamContext, _: Connection, queue: str, contents: Sequence[bytes]
) -> None:
    if len(contents) == 1:
        await context.publish(queue, contents[0])
    else:
        await asyncio.gather(*(context.publish(queue, each) for each in contents))


async def publish_batch(
    context: JetStreamContext, connection: Connection, queue: str, contents: Sequence[bytes]
) -> None:
    """All or nothing, with one answer and one sync."""
    if len(contents) == 1:
        await publish_each(context, connection, queue, contents)
        return
    headers = {Header.BATCH_ID.value: uuid4().hex}
    for number, each in enumerate(contents[:-1], 1):
        headers[Header.BATCH_SEQUENCE.value] = str(number)
        await connection.publish(queue, each, headers=headers)
    headers[Header.BATCH_SEQUENCE.value] = str(len(contents))
    headers[Header.BATCH_COMMIT.value] = "1"
    answer = await context.publish(queue, contents[-1], headers=headers)
    if answer.batch_size != len(contents):
        raise RuntimeError(f"NATS stored {answer.batch_size} of {len(contents)} messages")


@contextlib.asynccontextmanager
async def connected(address: str) -> AsyncIterator[Connection]:
    connection = await nats.connect(f"nats://{LOOPBACK}:{address}", allow_reconnect=False)
    try:
        yield connection
        await connection.flush()  # acks may still be on their way
    finally:
        await connection.close()
