"""Measures the latency of a normal client during attacks, and the server's memory."""

import multiprocessing
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from statistics import quantiles
from types import TracebackType
from typing import Self, TypeVar

import queueber
from bench.resident import resident_mb
from queueber.testing import ServerProcess
from queueber.tls import TlsOptions

T = TypeVar("T")


class Timer:
    """Seconds that each call took."""

    def __init__(self) -> None:
        self.took: list[float] = []

    def call(self, make: Callable[[], T]) -> T:
        began = time.monotonic()
        answer = make()
        self.took.append(time.monotonic() - began)
        return answer


Turn = Callable[[queueber.Client, Timer], None]
"""The loop of the client."""


def add_poll_remove(client: queueber.Client, timer: Timer) -> None:
    queue = client.queue("witness")
    timer.call(lambda: queue.add(b"x" * 100))
    lease = timer.call(lambda: queue.poll(1, lease=60))
    assert all(timer.call(lambda: queue.remove(lease.ids, lease=lease.id)))
    time.sleep(0.002)


def _behave(
    orders: "Connection[list[float], None]", address: str, turn: Turn, tls: TlsOptions | None
) -> None:
    """Run the loop, and send the durations of calls when asked."""
    timer = Timer()
    with queueber.connect(address, tls=tls) as client:
        while True:
            turn(client, timer)
            if orders.poll():
                try:
                    orders.recv()
                except EOFError:
                    return
                orders.send(timer.took)
                timer.took = []


class Witness:
    """Runs in its own process."""

    def __init__(
        self, address: str, turn: Turn = add_poll_remove, tls: TlsOptions | None = None
    ) -> None:
        context = multiprocessing.get_context("spawn")
        self._orders, theirs = context.Pipe()
        self._process = context.Process(
            target=_behave, args=(theirs, address, turn, tls), daemon=True
        )
        self._process.start()
        theirs.close()

    def take(self) -> list[float]:
        """The durations of its calls since the last time it was asked."""
        self._orders.send(None)
        if not self._orders.poll(30):
            raise AssertionError("the normal client got no answer")
        took: list[float] = self._orders.recv()
        return took

    def stop(self) -> None:
        self._orders.close()
        self._process.join(30)


def p99_ms(took: list[float]) -> float:
    return 1000 * (quantiles(took, n=100)[98] if len(took) > 1 else sum(took))


class MemoryWatch:
    """The highest memory of a server during the block."""

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
