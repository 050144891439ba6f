"""A client that behaves, beside those that do not: how it fares. And how large the server is."""

import multiprocessing
import threading
import time
from multiprocessing.connection import Connection
from statistics import quantiles
from types import TracebackType
from typing import Self

import queueber
from bench.resident import resident_mb
from queueber.testing import ServerProcess


def _behave(orders: "Connection[list[float], None]", address: str) -> None:
    """Add, poll and remove, over and over; say how long each took when asked."""
    took: list[float] = []
    with queueber.connect(address) as client:
        queue = client.queue("witness")
        while True:
            for step in (lambda: queue.add(b"x" * 100), lambda: queue.poll(1, lease=60)):
                began = time.monotonic()
                done = step()
                took.append(time.monotonic() - began)
            began = time.monotonic()
            assert isinstance(done, queueber.Lease)
            assert all(queue.remove(done.ids, done.id))
            took.append(time.monotonic() - began)
            time.sleep(0.002)
            if orders.poll():
                try:
                    orders.recv()
                except EOFError:
                    return
                orders.send(took)
                took = []


class Witness:
    """In a process of its own."""

    def __init__(self, address: str) -> None:
        context = multiprocessing.get_context("spawn")
        self._orders, theirs = context.Pipe()
        self._process = context.Process(target=_behave, args=(theirs, address), daemon=True)
        self._process.start()
        theirs.close()

    def take(self) -> list[float]:
        """How long each of its calls took since it was last asked."""
        self._orders.send(None)
        if not self._orders.poll(30):
            raise AssertionError("the client that behaves has no answer")
        took: list[float] = self._orders.recv()
        return took

    def stop(self) -> None:
        self._orders.close()
        self._process.join(30)


def p99_ms(took: list[float]) -> float:
    return 1000 * (quantiles(took, n=100)[98] if len(took) > 1 else sum(took))


class MemoryWatch:
    """The most that a server had while this was entered."""

    def __init__(self, server: ServerProcess) -> None:
        self._server = server
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self.before = self.most = self.after = 0.0

    def __enter__(self) -> Self:
        self.before = self.most = resident_mb(self._server)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._is_over.set()
        self._thread.join()
        self.after = resident_mb(self._server)

    def _look(self) -> None:
        while not self._is_over.wait(0.02):
            self.most = max(self.most, resident_mb(self._server))
