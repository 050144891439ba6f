"""RabbitMQ: a quorum queue of one node, with publisher confirms."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import aio_pika
from aio_pika.abc import AbstractChannel, AbstractIncomingMessage, AbstractQueue
from aiormq.abc import ChannelFrame
from pamqp import commands
from pamqp.body import ContentBody
from pamqp.header import ContentHeader

from bench.debian import find_program, install
from bench.peers.peer import WAIT_SECONDS, Client, Server, Taken
from bench.peers.processes import (
    LOOPBACK,
    data_folder,
    free_ports,
    port_answers,
    process_ids,
    running_process,
)

_PERSISTENT = aio_pika.DeliveryMode.PERSISTENT
_OTHERWISE = "leave 'rabbitmq' out of --peers"
_PREFETCH_CALLS = 2
"""Prefetch, in calls: messages that the server sends ahead."""
_FILL_ITEMS_MAX = 1000
"""Messages in one write."""
_SETTLE_SECONDS_MAX = 120.0
"""Seconds until the last filled message is in the queue."""


class RabbitServer:
    """A node with one port, for the protocol that `settings` tell."""

    packages = ("rabbitmq-server",)
    plugins: Sequence[str] = ()

    def settings(self, port: int) -> Mapping[str, str]:
        return {"listeners.tcp.default": f"{LOOPBACK}:{port}"}

    def version(self) -> str:
        return _home().name.removeprefix("rabbitmq_server-")

    @contextlib.contextmanager
    def running(self, folder: Path) -> Iterator[Server]:
        port, distribution_port, epmd_port = free_ports(3)
        epmd = find_program("epmd", title="Erlang", package="erlang-base", otherwise=_OTHERWISE)
        with data_folder(folder, "rabbitmq") as data_dir:
            (data_dir / "enabled_plugins").write_text(f"[{','.join(self.plugins)}].\n")
            (data_dir / "rabbitmq.conf").write_text(
                "".join(f"{name} = {value}\n" for name, value in self.settings(port).items())
            )
            environment = _environment(data_dir, port, distribution_port, epmd_port)
            with (
                # Otherwise the server starts one, which outlives it.
                running_process(
                    [epmd], data_dir, lambda: port_answers(epmd_port), environment=environment
                ) as epmd_root,
                running_process(
                    [str(_home() / "sbin" / "rabbitmq-server")],
                    data_dir,
                    lambda: port_answers(port),
                    environment=environment,
                ) as root,
            ):
                yield Server(str(port), lambda: process_ids(root) + process_ids(epmd_root))


class RabbitMQ(RabbitServer):
    name = "RabbitMQ"
    durability = "yes"
    notes = "quorum queue; acks are not answered, so nobody knows when they are on disk"
    library = "aio-pika"
    is_blocking = False

    @contextlib.asynccontextmanager
    async def connect(self, address: str, callers: int, queue: str) -> AsyncIterator[list[Client]]:
        # More connections are no faster: the client is the bottleneck.
        async with await _connected(address) as connection:
            channels = [await connection.channel(publisher_confirms=True) for _ in range(callers)]
            yield [_Client(channel, await _declared(channel, queue)) for channel in channels]

    async def fill(self, address: str, queue: str, contents: bytes, count: int) -> None:
        """Without confirms, by copies of one message as it is on the wire, in a single frame."""
        async with await _connected(address) as connection:
            channel = await connection.channel(publisher_confirms=False)
            goal = count + _waiting(await _declared(channel, queue))
            underlay: Any = await channel.get_underlay_channel()
            message = ChannelFrame.marshall(
                channel_number=underlay.number,
                frames=[
                    commands.Basic.Publish(routing_key=queue),
                    ContentHeader(
                        properties=commands.Basic.Properties(delivery_mode=_PERSISTENT),
                        body_size=len(contents),
                    ),
                    ContentBody(contents),
                ],
            ).payload
            for start in range(0, count, _FILL_ITEMS_MAX):
                written = asyncio.get_running_loop().create_future()
                payload = message * min(_FILL_ITEMS_MAX, count - start)
                await underlay.write_queue.put(ChannelFrame(payload, False, written))
                await written
            async with asyncio.timeout(_SETTLE_SECONDS_MAX):
                while True:
                    if _waiting(await _declared(channel, queue)) >= goal:
                        break
                    await asyncio.sleep(0.01)


class _Client:
    def __init__(self, channel: AbstractChannel, queue: AbstractQueue) -> None:
        self._channel = channel
        self._queue = queue
        self._arrived: asyncio.Queue[AbstractIncomingMessage] = asyncio.Queue()
        self._prefetch = 0
        self._unacked_from = 1
        """The first delivery of this channel that is not acknowledged."""

    async def add(self, contents: Sequence[bytes]) -> None:
        publish = self._channel.default_exchange.publish
        messages = [aio_pika.Message(each, delivery_mode=_PERSISTENT) for each in contents]
        if len(messages) == 1:
            await publish(messages[0], self._queue.name)
        else:
            await asyncio.gather(*(publish(each, self._queue.name) for each in messages))

    async def take(self, count: int) -> Taken:
        if not self._prefetch:
            # Not earlier: callers that only add must get no messages.
            await self._consume(_PREFETCH_CALLS * count)
        messages: list[AbstractIncomingMessage] = []
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(WAIT_SECONDS):
                messages.append(await self._arrived.get())
        while len(messages) < count and not self._arrived.empty():
            messages.append(self._arrived.get_nowait())
        return Taken([message.body for message in messages], messages)

    async def _consume(self, prefetch: int) -> None:
        self._prefetch = prefetch
        await self._channel.set_qos(prefetch_count=prefetch)
        await self._queue.consume(self._arrived.put)

    async def ack(self, taken: Taken) -> None:
        messages: Sequence[AbstractIncomingMessage] = taken.token
        if messages[0].delivery_tag == self._unacked_from:
            # Acknowledge all up to the last; none of them belongs to another call.
            await messages[-1].ack(multiple=True)
            self._unacked_from += len(messages)
        else:
            for message in messages:
                await message.ack()


def _home() -> Path:
    """The programs of the newest version; the command in PATH would switch to its own user."""
    for _ in range(2):
        found = sorted(Path("/usr/lib/rabbitmq/lib").glob("rabbitmq_server-*"))
        if found:
            return found[-1]
        install(["rabbitmq-server"], title="RabbitMQ", otherwise=_OTHERWISE)
    raise SystemExit("RabbitMQ is missing: its package rabbitmq-server has no rabbitmq_server-*")


def _environment(
    data_dir: Path, port: int, distribution_port: int, epmd_port: int
) -> Mapping[str, str]:
    """Everything of this node apart from any other's: names, ports, files, and the cookie."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(data_dir),
        "LANG": "C.UTF-8",
        "ERL_CRASH_DUMP_BYTES": "0",
        "ERL_EPMD_ADDRESS": LOOPBACK,
        "ERL_EPMD_PORT": str(epmd_port),
        "RABBITMQ_NODENAME": f"bench-{port}@localhost",
        "RABBITMQ_DIST_PORT": str(distribution_port),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        "RABBITMQ_CONF_ENV_FILE": str(data_dir / "none"),
        "RABBITMQ_CONFIG_FILE": str(data_dir / "rabbitmq.conf"),
        "RABBITMQ_ADVANCED_CONFIG_FILE": str(data_dir / "none.config"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(data_dir / "enabled_plugins"),
        "RABBITMQ_MNESIA_BASE": str(data_dir / "mnesia"),
        "RABBITMQ_LOG_BASE": str(data_dir / "log"),
        "RABBITMQ_GENERATED_CONFIG_DIR": str(data_dir / "config"),
        "RABBITMQ_PID_FILE": str(data_dir / "pid"),
    }


async def _connected(address: str) -> aio_pika.abc.AbstractConnection:
    return await aio_pika.connect(host=LOOPBACK, port=int(address))


async def _declared(channel: AbstractChannel, queue: str) -> AbstractQueue:
    return await channel.declare_queue(queue, durable=True, arguments={"x-queue-type": "quorum"})


def _waiting(queue: AbstractQueue) -> int:
    return queue.declaration_result.message_count or 0
