"""A peer in a comparison: its server, its driver, and its figures so far."""

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TypeVar

from bench.peers.driver_process import DriverProcess, Runs
from bench.peers.order import Order, Tally
from bench.peers.peer import Program, Server
from bench.peers.results import Figures
from bench.peers.usage import usage_of

_GRACE_SECONDS = 120.0
"""How much longer an answer may take than the order."""

RATE = "items/s"
P99 = "p99 ms"
Turn = tuple[str, Callable[[], None]]
"""A step of a comparison, with the name of its peer."""

ProgramT = TypeVar("ProgramT", bound=Program)


@dataclass(slots=True)
class Contender:
    peer: Program
    server: Server
    driver: DriverProcess
    rounds: dict[str, list[float]] = field(default_factory=dict)
    """Items a second, by column."""
    latencies_ms: dict[str, list[float]] = field(default_factory=dict)
    """The p99 of each round, by column."""
    figures: dict[str, Figures] = field(default_factory=dict)
    """Other figures, by column."""
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def order(self, order: Order) -> Tally:
        return self.driver.run(order, order.seconds + _GRACE_SECONDS)

    def new_name(self) -> str:
        """Of a queue or topic that is not there yet."""
        return f"bench{next(self.numbers)}"

    def add_round(self, column: str, items_per_second: float) -> None:
        self.rounds.setdefault(column, []).append(items_per_second)

    def add_latency(self, column: str, p99_ms: float) -> None:
        self.latencies_ms.setdefault(column, []).append(p99_ms)

    def resident_mb(self) -> float:
        return usage_of(self.server.process_ids()).resident_bytes / 1e6


@contextlib.contextmanager
def running_contenders(
    peers: Sequence[ProgramT], folder: Path, new_driver: Callable[[ProgramT, str], Runs]
) -> Iterator[list[Contender]]:
    """Run the servers of all peers, each with a process for its driver."""
    with contextlib.ExitStack() as stack:
        contenders = []
        for number, peer in enumerate(peers):
            own = folder / str(number)
            own.mkdir()
            server = stack.enter_context(peer.running(own))
            driver = DriverProcess(new_driver(peer, server.address))
            stack.callback(driver.stop)
            contenders.append(Contender(peer, server, driver))
        yield contenders


def spread(rounds: Sequence[float], unit: str = RATE) -> Figures:
    return {unit: median(rounds), "lowest": min(rounds), "highest": max(rounds)}
