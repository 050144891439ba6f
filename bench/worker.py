"""Worker pools with a handler that does nothing: the cost of the pool itself."""

import tempfile
import time
from pathlib import Path
from statistics import median

import queueber
from bench.measure import Shape, bench_parser, progress, scratch, start_report
from queueber.testing import running_server

_DESCRIPTION = """Measure worker pools whose handler returns at once, in threads, asyncio and trio,
against a server process that syncs before it answers: items a second from the first poll to the
last confirmed completion, and the CPU time of the worker's process for each item (with its client,
without the server). By default a pool prefetches as many items as it has handlers, so a handler
that does nothing waits for round trips; more prefetch shows the cost of the pool itself."""

_KINDS = ("threads", "asyncio", "trio")
_PREFETCHES = (32, 1000)
_CONCURRENCY = 32
_SHAPE = Shape(1000, 100)


def nothing(_: queueber.WorkItem) -> bytes:
    return b""


async def nothing_soon(_: queueber.WorkItem) -> bytes:
    return b""


def _run(folder: Path, kind: str, prefetch: int, items: int) -> tuple[float, float]:
    """Items a second, and the worker's CPU microseconds for each item."""
    with (
        tempfile.TemporaryDirectory(dir=folder) as data_dir,
        running_server(data_dir=Path(data_dir) / "data") as server,
    ):
        with queueber.connect(server.address) as client:
            for _ in range(items // _SHAPE.items):
                client.queue("bench").add(_SHAPE.contents())
        worker = queueber.Worker(
            server.address,
            queue="bench",
            handler=nothing if kind == "threads" else nothing_soon,
            loop="trio" if kind == "trio" else "asyncio",
            concurrency=_CONCURRENCY,
            prefetch=prefetch,
            progress=False,
        )
        started, cpu_before = time.perf_counter(), time.process_time()
        stats = worker.run(until="empty")
        elapsed, cpu = time.perf_counter() - started, time.process_time() - cpu_before
        if stats.done != items:
            raise SystemExit(f"{items} items went in, but {stats}")
        return items / elapsed, cpu * 1e6 / items


def main() -> None:
    parser = bench_parser(_DESCRIPTION)
    parser.add_argument(
        "--items", type=int, default=50_000, help="of each round, in whole thousands"
    )
    parser.add_argument("--repeat", type=int, default=3, help="rounds of each kind")
    arguments = parser.parse_args()
    cases = [(kind, prefetch) for kind in _KINDS for prefetch in _PREFETCHES]
    found: dict[tuple[str, int], list[tuple[float, float]]] = {case: [] for case in cases}
    with scratch(arguments.dir) as folder, progress() as bar:
        report = start_report("Worker pools, durability sync", arguments, folder)
        turns = cases * arguments.repeat
        for kind, prefetch in bar.track(turns, description="pools in turn"):
            found[kind, prefetch].append(_run(folder, kind, prefetch, arguments.items))
    rows: list[dict[str, object]] = []
    for (kind, prefetch), rounds in found.items():
        rates = [rate for rate, _ in rounds]
        rows.append(
            {
                "handlers": f"{_CONCURRENCY} in {kind}",
                "prefetch": prefetch,
                "items/s": round(median(rates)),
                "spread": f"{(max(rates) - min(rates)) / median(rates):.0%}",
                "CPU µs/item": round(median(cpu for _, cpu in rounds), 1),
            }
        )
    report.table("Pools", rows)
    report.write_json(arguments.json)


if __name__ == "__main__":
    main()
