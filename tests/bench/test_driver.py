"""The callers: what they do to a queue, on one loop or on threads."""

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import pytest

from bench.peers.driver import Driver
from bench.peers.order import Order
from bench.peers.peer import Client, Server, Taken


class Memory:
    """A queue in memory."""

    name = library = durability = notes = ""
    packages: Sequence[str] = ()

    def __init__(self, *, is_blocking: bool) -> None:
        self.is_blocking = is_blocking
        self.waiting: deque[bytes] = deque()
        self.most = self.acked = 0
        self.threads: set[int] = set()
        self.lock = threading.Lock()

    def version(self) -> str:
        return ""

    @contextlib.contextmanager
    def running(self, folder: Path) -> Iterator[Server]:
        yield Server("", list)

    @contextlib.asynccontextmanager
    async def connect(self, address: str, callers: int, queue: str) -> AsyncIterator[list[Client]]:
        yield [self] * callers

    async def fill(self, address: str, queue: str, contents: bytes, count: int) -> None:
        self.waiting.extend([contents] * count)

    async def add(self, contents: Sequence[bytes]) -> None:
        self.threads.add(threading.get_ident())
        with self.lock:
            self.waiting.extend(contents)
            self.most = max(self.most, len(self.waiting))
        await self._let_others()

    async def take(self, count: int) -> Taken:
        await self._let_others()
        with self.lock:
            taken = [self.waiting.popleft() for _ in range(min(count, len(self.waiting)))]
        return Taken(taken, len(taken))

    async def ack(self, taken: Taken) -> None:
        with self.lock:
            self.acked += taken.token

    async def _let_others(self) -> None:
        if not self.is_blocking:
            await asyncio.sleep(0)


@pytest.fixture(params=[False, True], ids=["loop", "threads"])
def peer(request: pytest.FixtureRequest) -> Memory:
    return Memory(is_blocking=request.param)


def test_adds_go_on_until_their_time_is_over(peer: Memory) -> None:
    tally = Driver(peer, "").run(Order("add", "q", 10, items=3, callers=4, seconds=0.3))

    assert tally.items == len(peer.waiting) > 0
    assert len(tally.samples_ns) == tally.items / 3
    assert {len(each) for each in peer.waiting} == {10}
    assert len(peer.threads) == (4 if peer.is_blocking else 1)


def test_takes_end_when_there_is_nothing_left(peer: Memory) -> None:
    filled = Driver(peer, "").run(Order("fill", "q", 10, count=1000, seconds=10))
    tally = Driver(peer, "").run(Order("take", "q", 10, items=7, callers=4, seconds=60))

    assert filled.items == tally.items == peer.acked == 1000
    assert not peer.waiting


def test_probe_times_single_polls(peer: Memory) -> None:
    Driver(peer, "").run(Order("fill", "q", 10, count=100, seconds=10))

    tally = Driver(peer, "").run(Order("probe", "q", 10, count=20))

    assert (tally.items, len(tally.samples_ns), peer.acked) == (20, 20, 20)


def test_sustained_load_keeps_few_items_waiting(peer: Memory) -> None:
    order = Order("sustain", "q", 10, items=5, callers=6, seconds=0.3, count=50)

    tally = Driver(peer, "").run(order)

    assert tally.items == peer.acked == len(tally.samples_ns) > 0
    assert 0 < peer.most <= 50
    assert all(0 < each < 10**9 for each in tally.samples_ns)
