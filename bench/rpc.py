"""The server through RPC, compared with the engine alone in the same run."""

import asyncio
import multiprocessing
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any

from bench.engine import Rounds, run_rounds
from bench.measure import (
    OPERATIONS,
    SECOND_NS,
    SHAPES,
    Round,
    Shape,
    bench_parser,
    progress,
    rate_of,
    scratch,
    start_report,
)
from queueber import AsyncLease, AsyncQueue, connect_async
from queueber.testing import running_server

_DESCRIPTION = """Measure add, poll and remove through RPC: a server process that syncs before it
answers, and client processes, with 1 item in a call from 32 callers and 100 items in a call from 8.
Each round also measures the engine alone with group commit and as many calls outstanding as there
are callers; the ratio compares the two. Callers use the asyncio client, which is as fast as threads
with the blocking one. "own": each caller has its own client, so every call reaches the server
separately, as in the engine's round. "shared": the callers of a process share a client, which
batches their calls (up to 800 items here); this is what a program with one client gets, but not the
same work as the engine's. Polls and removes drain the added items, so they may end early."""

CALLERS = {1: 32, 100: 8}
_LEASE_SECONDS = 600.0
_ANSWER_SECONDS_MAX = 60.0
_RATIO_MIN = 0.5
"""The share of the engine's rate that adds of 100 items in a call must reach."""
_CLIENTS = ("own", "shared")


@dataclass(frozen=True, slots=True)
class Plan:
    """An order to a client process."""

    address: str
    shape: Shape
    callers: int
    clients: str
    seconds: float
    connect: dict[str, Any] = field(default_factory=dict)
    """Further arguments of `connect`."""


@dataclass(slots=True)
class Tally:
    """The calls of one process. All processes share one clock."""

    items: int = 0
    started_ns: int = field(default_factory=time.perf_counter_ns)
    ended_ns: int = 0
    calls_ns: list[int] = field(default_factory=list)

    def is_over(self, seconds: float) -> bool:
        return time.perf_counter_ns() - self.started_ns > seconds * SECOND_NS

    def count(self, items: int, began_ns: int) -> None:
        self.ended_ns = time.perf_counter_ns()
        self.items += items
        self.calls_ns.append(self.ended_ns - began_ns)


# --- in a client process --------------------------------------------------------------------------


class Callers:
    """Concurrent callers, each with a queue; several may share one."""

    def __init__(self, queues: list[AsyncQueue], plan: Plan) -> None:
        self._queues = queues
        self._plan = plan
        self._contents = plan.shape.contents()
        self._leases: deque[AsyncLease] = deque()

    async def run(self, operation: str) -> Tally:
        tally = Tally()
        async with asyncio.TaskGroup() as group:
            for queue in self._queues:
                group.create_task(self._call_until_over(operation, queue, tally))
        return tally

    async def _call_until_over(self, operation: str, queue: AsyncQueue, tally: Tally) -> None:
        while not tally.is_over(self._plan.seconds):
            began_ns = time.perf_counter_ns()
            moved = await self._call(operation, queue)
            if not moved:
                return
            tally.count(moved, began_ns)

    async def _call(self, operation: str, queue: AsyncQueue) -> int:
        if operation == "add":
            return len(await queue.add(self._contents))
        if operation == "poll":
            lease = await queue.poll(self._plan.shape.items, lease=_LEASE_SECONDS)
            if lease:
                self._leases.append(lease)
            return len(lease)
        if not self._leases:
            return 0
        taken = self._leases.popleft()
        return sum(await queue.remove(taken.ids, lease=taken.id))


async def _obey(orders: "Connection[Tally | None, str]", plan: Plan) -> None:
    async with AsyncExitStack() as stack:
        count = plan.callers if plan.clients == "own" else 1
        clients = [
            await stack.enter_async_context(connect_async(plan.address, **plan.connect))
            for _ in range(count)
        ]
        queues = [clients[at % count].queue("bench") for at in range(plan.callers)]
        for queue in queues:
            await queue.stats()
        callers = Callers(queues, plan)
        orders.send(None)
        while operation := orders.recv():
            orders.send(await callers.run(operation))


def _client_main(orders: "Connection[Tally | None, str]", plan: Plan) -> None:
    """Connect, report it, and execute orders until an empty one comes."""
    asyncio.run(_obey(orders, plan))


# --- in the process that measures -----------------------------------------------------------------


class ClientProcess:
    def __init__(self, plan: Plan) -> None:
        context = multiprocessing.get_context("spawn")
        self._orders, theirs = context.Pipe()
        self._process = context.Process(target=_client_main, args=(theirs, plan), daemon=True)
        self._process.start()
        theirs.close()

    def order(self, operation: str) -> None:
        """Send an order; an empty one ends the process."""
        self._orders.send(operation)

    def wait(self) -> Tally | None:
        if not self._orders.poll(_ANSWER_SECONDS_MAX):
            raise RuntimeError(f"a client did not answer in {_ANSWER_SECONDS_MAX} s")
        answer: Tally | None = self._orders.recv()
        return answer

    def stop(self) -> None:
        self._process.terminate()
        self._process.join()


@contextmanager
def client_processes(count: int, plan: Plan) -> Iterator[list[ClientProcess]]:
    clients = [ClientProcess(plan) for _ in range(count)]
    try:
        for client in clients:
            client.wait()
        yield clients
        for client in clients:
            client.order("")
    finally:
        for client in clients:
            client.stop()


def run_clients(clients: list[ClientProcess], operation: str) -> Round:
    for client in clients:
        client.order(operation)
    tallies = [tally for client in clients if (tally := client.wait()) is not None]
    return Round(
        sum(tally.items for tally in tallies),
        max(tally.ended_ns for tally in tallies) - min(tally.started_ns for tally in tallies),
        [ns for tally in tallies for ns in tally.calls_ns],
    )


def _run_server(
    folder: Path, shape: Shape, *, clients: str, seconds: float, processes: int
) -> Rounds:
    """Add for a while, then poll and remove the added items, on a new server."""
    callers = CALLERS[shape.items] // processes
    with (
        tempfile.TemporaryDirectory(dir=folder) as path,
        running_server("--durability", "sync", data_dir=Path(path) / "data") as server,
        client_processes(
            processes, Plan(server.address, shape, callers, clients, seconds)
        ) as started,
    ):
        return {name: run_clients(started, name) for name in OPERATIONS}


@dataclass(frozen=True, slots=True)
class Ratio:
    """The ratio of the server's rate to the engine's, by round."""

    middle: float
    lowest: float
    highest: float

    def __str__(self) -> str:
        return f"{self.middle:.2f} ({self.lowest:.2f} to {self.highest:.2f})"


def _ratio(rpc: list[Round], engine: list[Round]) -> Ratio:
    ratios = [
        mine.items_per_second / theirs.items_per_second
        for mine, theirs in zip(rpc, engine, strict=True)
    ]
    return Ratio(median(ratios), min(ratios), max(ratios))


def main() -> None:
    parser = bench_parser(_DESCRIPTION)
    parser.add_argument("--seconds", type=float, default=1.0, help="how long a round adds")
    parser.add_argument("--repeat", type=int, default=3, help="rounds of each kind")
    parser.add_argument("--processes", type=int, choices=(1, 2), default=1, help="of clients")
    arguments = parser.parse_args()
    of_engine: dict[Shape, list[Rounds]] = {shape: [] for shape in SHAPES}
    of_rpc: dict[tuple[Shape, str], list[Rounds]] = {}
    with scratch(arguments.dir) as folder, progress() as bar:
        report = start_report("Server through RPC, durability sync", arguments, folder)
        for shape in bar.track(arguments.repeat * SHAPES, description="engine and RPC in turn"):
            window = CALLERS[shape.items]
            of_engine[shape].append(run_rounds(folder, shape, arguments.seconds, "group", window))
            for clients in _CLIENTS:
                found = _run_server(
                    folder,
                    shape,
                    clients=clients,
                    seconds=arguments.seconds,
                    processes=arguments.processes,
                )
                of_rpc.setdefault((shape, clients), []).append(found)
    rows: list[dict[str, object]] = []
    ratios: dict[tuple[str, Shape, str], Ratio] = {}
    for name in OPERATIONS:
        for (shape, clients), rounds in of_rpc.items():
            rpc = [each[name] for each in rounds]
            engine = [each[name] for each in of_engine[shape]]
            ratio = ratios[name, shape, clients] = _ratio(rpc, engine)
            rows.append(
                {
                    "call": name,
                    "items": shape.items,
                    "bytes": shape.content_bytes,
                    "callers": CALLERS[shape.items],
                    "clients": clients,
                    **rate_of(rpc).shown(),
                    "engine items/s": round(rate_of(engine).items_per_second),
                    "ratio": str(ratio),
                }
            )
    report.table("RPC", rows)
    for (name, shape, clients), ratio in ratios.items():
        if name == "add" and shape.items == 100:
            how = "as they are" if clients == "own" else "joined by a shared client"
            report.verdict(
                f"adds of 100 items of {shape.content_bytes} B, {how}, reach {_RATIO_MIN} of the "
                f"engine's group-synced rate: {ratio}",
                is_met=ratio.middle >= _RATIO_MIN,
            )
    report.write_json(arguments.json)


if __name__ == "__main__":
    main()
