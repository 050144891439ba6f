"""The callers of queues, which execute orders and report their outcome.

Callers of a blocking client have a thread each, with a loop that never waits; all others share one
loop. Both run the same code.
"""

import asyncio
import contextlib
import os
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable

from bench.measure import SECOND_NS
from bench.peers.order import Order, Tally
from bench.peers.peer import Client, Peer

_STAMP_BYTES = 8
_ROOM_SECONDS = 0.2
_EMPTY_NS = SECOND_NS // 4
"""If no caller got an item for this long, the queue is empty."""


Caller = Callable[[int, Client], Awaitable[None]]


class Driver:
    """Its operations are 'add', 'take' (and acknowledge), 'drain' (the same to the end), 'sustain',
    'probe' and 'fill'. The count of an order is the most items of `fill`, the calls of `probe`, and
    the items of `sustain` that may wait at a time."""

    def __init__(self, peer: Peer, address: str) -> None:
        self._peer = peer
        self._address = address

    def run(self, order: Order) -> Tally:
        if order.work == "fill":
            return self._fill(order)
        self._contents = [os.urandom(order.content_bytes) for _ in range(order.items)]
        self._tally = Tally()
        self._room: _Room | _RoomOfThreads = (
            _RoomOfThreads(order.count) if self._peer.is_blocking else _Room(order.count)
        )
        work: Caller = {
            "add": self._add, "take": self._take, "drain": self._take, "probe": self._probe,
            "sustain": self._sustain,
        }[order.work]  # fmt: skip
        self._order = order
        if self._peer.is_blocking:
            self._run_threads(work)
        else:
            asyncio.run(self._run_tasks(work))
        return self._tally

    def _fill(self, order: Order) -> Tally:
        tally = Tally()
        contents = os.urandom(order.content_bytes)
        step = max(1, order.count // 100)
        while tally.items < order.count and not tally.is_over(order.seconds):
            asyncio.run(self._peer.fill(self._address, order.name, contents, step))
            tally.count(step, tally.started_ns)
        return tally

    # --- side by side -----------------------------------------------------------------------------

    async def _run_tasks(self, work: Caller) -> None:
        order = self._order
        async with self._peer.connect(self._address, order.callers, order.name) as clients:
            self._tally.started_ns = time.perf_counter_ns()
            async with asyncio.TaskGroup() as group:
                for number, client in enumerate(clients):
                    group.create_task(work(number, client))  # type: ignore[arg-type]

    def _run_threads(self, work: Caller) -> None:
        order = self._order
        failures: list[BaseException] = []
        start = threading.Barrier(order.callers, action=self._start)

        async def run_one(number: int) -> None:
            async with self._peer.connect(self._address, 1, order.name) as clients:
                start.wait()
                await work(number, clients[0])

        def run(number: int) -> None:
            try:
                asyncio.run(run_one(number))
            except BaseException as error:  # noqa: BLE001  raised below
                failures.append(error)
                start.abort()

        threads = [threading.Thread(target=run, args=(n,)) for n in range(order.callers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]

    def _start(self) -> None:
        self._tally.started_ns = time.perf_counter_ns()

    # --- what a caller does -----------------------------------------------------------------------

    async def _add(self, _: int, client: Client) -> None:
        while not self._tally.is_over(self._order.seconds):
            began_ns = time.perf_counter_ns()
            await client.add(self._contents)
            self._tally.count(len(self._contents), began_ns)

    async def _take(self, _: int, client: Client) -> None:
        while not self._tally.is_over(self._order.seconds):
            began_ns = time.perf_counter_ns()
            taken = await client.take(self._order.items)
            if taken.contents:
                await client.ack(taken)
                self._tally.count(len(taken.contents), began_ns)
            elif began_ns > self._tally.ended_ns + _EMPTY_NS:
                # Not earlier: some clients return nothing for a moment although items are left.
                return

    async def _probe(self, _: int, client: Client) -> None:
        """Time only the polls."""
        for _ in range(self._order.count):
            began_ns = time.perf_counter_ns()
            taken = await client.take(self._order.items)
            self._tally.count(len(taken.contents), began_ns)
            if not taken.contents:
                return
            await client.ack(taken)

    async def _sustain(self, number: int, client: Client) -> None:
        if number % 2:
            await self._consume(client)
        else:
            await self._produce(client)

    async def _produce(self, client: Client) -> None:
        order, tally = self._order, self._tally
        rest = self._contents[0][_STAMP_BYTES:]
        while not tally.is_over(order.seconds):
            if not await self._room.take(order.items):
                continue
            stamp = time.perf_counter_ns().to_bytes(_STAMP_BYTES)
            await client.add([stamp + rest] * order.items)

    async def _consume(self, client: Client) -> None:
        order, tally = self._order, self._tally
        while not tally.is_over(order.seconds):
            taken = await client.take(order.items)
            now_ns = time.perf_counter_ns()
            self._room.give(len(taken.contents))
            tally.samples_ns += [
                now_ns - int.from_bytes(contents[:_STAMP_BYTES]) for contents in taken.contents
            ]
            if taken.contents:
                await client.ack(taken)
                tally.items += len(taken.contents)
                tally.ended_ns = time.perf_counter_ns()


class _Room:
    """Limits how many items wait; producers queue for it."""

    def __init__(self, items: int) -> None:
        self._items = items
        self._line: deque[tuple[int, asyncio.Future[None]]] = deque()

    async def take(self, items: int) -> bool:
        """Reserve space for some items; False if there was none for a while."""
        if self._items < items or self._line:
            turn = asyncio.get_running_loop().create_future()
            self._line.append((items, turn))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(turn, _ROOM_SECONDS)
            return not turn.cancelled()
        self._items -= items
        return True

    def give(self, items: int) -> None:
        self._items += items
        while self._line and self._items >= self._line[0][0]:
            wanted, turn = self._line.popleft()
            if not turn.done():
                self._items -= wanted
                turn.set_result(None)


class _RoomOfThreads:
    """The same for blocking callers."""

    def __init__(self, items: int) -> None:
        self._items = items
        self._changed = threading.Condition()

    async def take(self, items: int) -> bool:
        with self._changed:
            if not self._changed.wait_for(lambda: self._items >= items, _ROOM_SECONDS):
                return False
            self._items -= items
            return True

    def give(self, items: int) -> None:
        with self._changed:
            self._items += items
            self._changed.notify()
