"""The process of a driver: callers must not take turns with whoever measures."""

import multiprocessing
from multiprocessing.connection import Connection
from typing import Protocol

from bench.peers.order import Order, Tally


class Runs(Protocol):
    """A driver; it is sent to its process as it is before its first order."""

    def run(self, order: Order) -> Tally:
        """Execute an order, on a loop or on threads that end with it."""


def _obey(orders: "Connection[Tally | BaseException, Order | None]", driver: Runs) -> None:
    while (order := orders.recv()) is not None:
        try:
            orders.send(driver.run(order))
        except BaseException as error:  # noqa: BLE001  raised in the process that measures
            orders.send(RuntimeError(f"{type(error).__name__}: {error}"))


class DriverProcess:
    def __init__(self, driver: Runs) -> None:
        context = multiprocessing.get_context("spawn")
        self._orders, theirs = context.Pipe()
        self._process = context.Process(target=_obey, args=(theirs, driver), daemon=True)
        self._process.start()
        theirs.close()

    def run(self, order: Order, answer_seconds_max: float) -> Tally:
        self._orders.send(order)
        if not self._orders.poll(answer_seconds_max):
            raise RuntimeError(f"{order} took longer than {answer_seconds_max} s")
        answer = self._orders.recv()
        if isinstance(answer, BaseException):
            raise answer
        tally: Tally = answer
        return tally

    def stop(self) -> None:
        self._process.terminate()
        self._process.join()
