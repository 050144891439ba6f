"""Acknowledgements of an ordered group. The latest of a partition stands for those before it."""

import asyncio
from concurrent.futures import Future
from functools import partial
from typing import Any

from queueber.client.calls.streams import Stream
from queueber.client.transport.futures import answer_future, fail_future
from queueber.client.transport.remote_queue import RemoteQueue

_Waiter = tuple[int, int, "Future[bool]"]
"""Partition, offset, and who waits until it is acknowledged."""


class OrderedAcks:
    """While one call is under way, the acknowledgements that follow are joined into the next."""

    def __init__(self, topic: RemoteQueue, group: str) -> None:
        self._topic = topic
        self._connection = topic.connection
        self._group = group
        self.stream: Stream | None = None
        """The subscription, if it is open: the server tells it if another consumer took over."""
        self._pending: dict[int, int] = {}
        self._waiters: list[_Waiter] = []
        self._task: asyncio.Task[None] | None = None
        self.error: Exception | None = None
        """Why an acknowledgement that nobody waited for failed."""

    # --- any thread -------------------------------------------------------------------------------

    def ack(self, partition: int, offset: int) -> "Future[bool]":
        """The group is done with all messages before `offset`."""
        future: Future[bool] = self._connection.new_future()
        self._connection.post(partial(self._put, partition, offset, future))
        return future

    def ack_soon(self, partition: int, offset: int) -> None:
        self._connection.post(partial(self._put, partition, offset, None))

    # --- on the loop ------------------------------------------------------------------------------

    def _put(self, partition: int, offset: int, future: "Future[bool] | None") -> None:
        self._pending[partition] = max(offset, self._pending.get(partition, 0))
        if future is not None:
            self._waiters.append((partition, offset, future))
        if self._task is None or self._task.done():
            self._task = self._connection.spawn(self._run())

    async def _run(self) -> None:
        while self._pending:
            pending, self._pending = self._pending, {}
            waiters, self._waiters = self._waiters, []
            for partition, offset in pending.items():
                of_partition = [each for each in waiters if each[0] == partition]
                await self._send(partition, offset, of_partition)

    async def _send(self, partition: int, offset: int, waiters: list[_Waiter]) -> None:
        try:
            reached = await self._call(partition, offset)
        except Exception as error:  # noqa: BLE001  whoever waits gets it, whatever it is
            self.error = self.error or error
            for _, _, future in waiters:
                fail_future(future, error)
        else:
            for _, wanted, future in waiters:
                answer_future(future, reached >= wanted)

    async def _call(self, partition: int, offset: int) -> int:
        async def send(topic: Any) -> Any:
            stream = self.stream
            if stream is not None and stream.subscription is not None:
                return await stream.subscription.ack(partition, offset)
            return await topic.ack(self._group, partition, offset)

        response = await self._topic.call(send, is_repeatable=True)
        return int(response.offset)

    async def sent(self) -> None:
        """Wait until the acknowledgements that were given are sent."""
        if self._task is not None and not self._task.done():
            await asyncio.wait([self._task])
