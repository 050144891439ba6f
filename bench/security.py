"""What TLS costs: the same calls over plain connections and over TLS."""

import asyncio
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from bench.measure import Shape, bench_parser, progress, scratch, start_report
from bench.resident import resident_mb
from bench.rpc import CALLERS, Plan, client_processes, run_clients
from queueber import AsyncClient, connect_async
from queueber.testing import ServerProcess, running_server
from tests.support.certificates import Authority, new_authority

_DESCRIPTION = """Measure add and poll of 1 and of 100 items a call, of 1 KiB each, over plain
connections and over TLS 1.3, in turn. The processor time is that of the server's process, for each
call. On a machine whose cores are all in use, a rate falls by what both ends spend; the processor
time is the fairer figure. Each of the 32 callers of 1 item, and of the 8 of 100 items, has its own
connection. Then connections are opened one after the other, with one call each, and the memory of
idle ones is counted."""

_SHAPES = (Shape(1, 1024), Shape(100, 1024))
_OPERATIONS = ("add", "poll")
_CONNECTIONS = 200
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Mode:
    """How a server is protected, and how its clients connect."""

    name: str
    options: tuple[str, ...] = ()
    connect: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Cost:
    calls_per_second: float
    server_us: float
    """Processor time of the server for each call."""


def modes(authority: Authority) -> list[Mode]:
    """The first one is what others are compared with."""
    return [
        Mode("plain"),
        Mode("TLS", authority.server_options(), {"tls": authority.trusted()}),
    ]


def cpu_seconds(server: ServerProcess) -> float:
    """Processor time that the server's process has used so far."""
    assert server.process is not None
    text = Path(f"/proc/{server.process.pid}/stat").read_text()
    user, system = text.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / _TICKS_PER_SECOND


def measure_calls(folder: Path, mode: Mode, shape: Shape, seconds: float) -> dict[str, Cost]:
    callers = CALLERS[shape.items]
    with (
        tempfile.TemporaryDirectory(dir=folder) as path,
        running_server(*mode.options, data_dir=Path(path) / "data") as server,
        client_processes(
            1, Plan(server.address, shape, callers, "own", seconds, mode.connect)
        ) as clients,
    ):
        costs = {}
        for operation in _OPERATIONS:
            before = cpu_seconds(server)
            done = run_clients(clients, operation)
            used = cpu_seconds(server) - before
            calls = len(done.calls_ns)
            costs[operation] = Cost(calls * 1e9 / done.elapsed_ns, 1e6 * used / calls)
        return costs


def measure_connections(folder: Path, mode: Mode) -> tuple[Cost, float]:
    """What a new connection costs, and the KB of an idle one."""

    async def open_all(address: str) -> list[AsyncClient]:
        return [await connect_async(address, **mode.connect) for _ in range(_CONNECTIONS)]

    async def main(server: ServerProcess) -> tuple[Cost, float]:
        loop = asyncio.get_running_loop()
        for client in await open_all(server.address):
            await client.aclose()
        memory, used, began = resident_mb(server), cpu_seconds(server), loop.time()
        clients = await open_all(server.address)
        took, used = loop.time() - began, cpu_seconds(server) - used
        kilobytes = 1000 * (resident_mb(server) - memory) / _CONNECTIONS
        for client in clients:
            await client.aclose()
        return Cost(_CONNECTIONS / took, 1e6 * used / _CONNECTIONS), kilobytes

    with (
        tempfile.TemporaryDirectory(dir=folder) as path,
        running_server(*mode.options, data_dir=Path(path) / "data") as server,
    ):
        return asyncio.run(main(server))


def compared(rounds: list[dict[str, Cost]], mode: str, first: str) -> dict[str, object]:
    """Medians, and the medians of the ratios of each round to the first mode of that round."""
    rates = [each[mode].calls_per_second for each in rounds]
    times = [each[mode].server_us for each in rounds]
    of_rates = [each[mode].calls_per_second / each[first].calls_per_second for each in rounds]
    of_times = [each[mode].server_us / each[first].server_us for each in rounds]
    return {
        "a second": round(median(rates)),
        "ratio": median(of_rates),
        "server µs": round(median(times)),
        "ratio of µs": median(of_times),
    }


def main() -> None:
    parser = bench_parser(_DESCRIPTION)
    parser.add_argument("--seconds", type=float, default=2.0, help="how long a round adds")
    parser.add_argument("--repeat", type=int, default=5, help="rounds of each kind")
    arguments = parser.parse_args()
    calls: dict[tuple[str, Shape], list[dict[str, Cost]]] = {}
    connections: list[dict[str, Cost]] = []
    kilobytes: dict[str, list[float]] = {}
    with scratch(arguments.dir) as folder, progress() as bar:
        report = start_report("What TLS costs", arguments, folder)
        all_modes = modes(new_authority(folder / "certificates"))
        for _ in bar.track(range(arguments.repeat), description="in turn"):
            for shape in _SHAPES:
                found = {
                    mode.name: measure_calls(folder, mode, shape, arguments.seconds)
                    for mode in all_modes
                }
                for operation in _OPERATIONS:
                    of_modes = {name: costs[operation] for name, costs in found.items()}
                    calls.setdefault((operation, shape), []).append(of_modes)
            opened = {mode.name: measure_connections(folder, mode) for mode in all_modes}
            connections.append({name: cost for name, (cost, _) in opened.items()})
            for name, (_, size) in opened.items():
                kilobytes.setdefault(name, []).append(size)
    first = all_modes[0].name
    rows = [
        {"call": operation, "items": shape.items, "over": mode.name,
         **compared(rounds, mode.name, first)}
        for (operation, shape), rounds in calls.items()
        for mode in all_modes
    ]  # fmt: skip
    report.table("Calls", [dict(row) for row in rows])
    report.table(
        "Connections",
        [
            {
                "over": mode.name,
                **compared(connections, mode.name, first),
                "KB, idle": round(median(kilobytes[mode.name])),
            }
            for mode in all_modes
        ],
    )
    report.write_json(arguments.json)


if __name__ == "__main__":
    main()
