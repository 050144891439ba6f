"""Worker pools with a handler that does nothing: the cost of the pool itself."""

import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import queueber
from bench.measure import Report, Shape, bench_parser, progress, scratch, start_report
from bench.page import write_tables
from queueber.testing import running_server

_DESCRIPTION = """Measure worker pools whose handler returns at once, in threads, asyncio and trio,
against a server process that syncs before it answers: items a second from the first poll to the
last confirmed completion, and the CPU time of the worker's process for each item (with its client,
without the server). Typed jobs of an app are compared with plain handlers of the same contents, in
turn, by CPU time; the exit code is 1 if they take more than 1.3 times as much. By default a pool
prefetches as many items as it has handlers, so a handler that does nothing waits for round trips;
more prefetch shows the cost of the pool itself."""

_KINDS = ("threads", "asyncio", "trio")
_PREFETCHES = (32, 1000)
_CONCURRENCY = 32
_SHAPE = Shape(1000, 100)
_JOB = b'{"job":"resize","args":{"path":"cat.jpg","width":200}}'
_TYPED = "typed job"
_JOB_KINDS = ("plain", "plain with JSON", _TYPED)
_POOLS_TABLE, _JOBS_TABLE = "Pools", "Typed jobs"
_JOB_RATIO_MAX = 1.3

app = queueber.App()


@app.job("resize", queue="bench")
def resize(path: str, width: int) -> None: ...


@app.job("resize_soon", queue="bench")
async def resize_soon(path: str, width: int) -> None: ...


def nothing(_: queueber.WorkItem) -> bytes:
    return b""


async def nothing_soon(_: queueber.WorkItem) -> bytes:
    return b""


def _run(folder: Path, kind: str, prefetch: int, items: int) -> tuple[float, float]:
    handler = nothing if kind == "threads" else nothing_soon
    loop = "trio" if kind == "trio" else "asyncio"
    return _work(folder, items, _SHAPE.contents(), prefetch, handler=handler, loop=loop)


def _run_job(folder: Path, kind: str, is_async: bool, items: int) -> float:
    """The CPU microseconds for each item."""
    contents = [_JOB.replace(b"resize", b"resize_soon") if is_async else _JOB] * _SHAPE.items
    options: dict[str, Any] = {"handler": nothing_soon if is_async else nothing}
    if kind == "plain with JSON":
        options["deserializer"] = "json"
    elif kind == _TYPED:
        options["handler"] = app
    return _work(folder, items, contents, max(_PREFETCHES), **options)[1]


def _work(
    folder: Path, items: int, contents: list[bytes], prefetch: int, **options: Any
) -> tuple[float, float]:
    """Items a second, and the worker's CPU microseconds for each item."""
    with (
        tempfile.TemporaryDirectory(dir=folder) as data_dir,
        running_server(data_dir=Path(data_dir) / "data") as server,
    ):
        with queueber.connect(server.address) as client:
            for _ in range(items // _SHAPE.items):
                client.queue("bench").add(contents)
        worker = queueber.Worker(
            server.address,
            queue="bench",
            concurrency=_CONCURRENCY,
            prefetch=prefetch,
            progress=False,
            **options,
        )
        started, cpu_before = time.perf_counter(), time.process_time()
        stats = worker.run(until="empty")
        elapsed, cpu = time.perf_counter() - started, time.process_time() - cpu_before
        if stats.done != items:
            raise SystemExit(f"{items} items went in, but {stats}")
        return items / elapsed, cpu * 1e6 / items


def _job_row(
    jobs: dict[tuple[bool, str], list[float]], is_async: bool, kind: str
) -> dict[str, object]:
    """Ratios are taken round by round: neighbours meet the same machine."""
    plain, own = jobs[is_async, "plain"], jobs[is_async, kind]
    ratio = median(cpu / before for cpu, before in zip(own, plain, strict=True))
    return {
        "handlers": f"{_CONCURRENCY} in {'asyncio' if is_async else 'threads'}",
        "kind": kind,
        "CPU µs/item": round(median(own), 1),
        "times plain": f"{ratio:.2f}",
    }


def _judge(report: Report, rows: list[dict[str, object]]) -> None:
    for row in rows:
        if row["kind"] == _TYPED:
            ratio = float(str(row["times plain"]))
            report.verdict(
                f"typed jobs, {row['handlers']}, take at most {_JOB_RATIO_MAX:g} times the "
                f"CPU time of plain handlers: {ratio:.2f}",
                is_met=ratio <= _JOB_RATIO_MAX,
            )


def main() -> int:
    parser = bench_parser(_DESCRIPTION)
    parser.add_argument(
        "--items", type=int, default=50_000, help="of each round, in whole thousands"
    )
    parser.add_argument("--repeat", type=int, default=3, help="rounds of each kind")
    parser.add_argument("--jobs", action="store_true", help="typed jobs alone")
    parser.add_argument("--page", action="store_true", help="write docs/performance.md")
    arguments = parser.parse_args()
    cases = [(kind, prefetch) for kind in _KINDS for prefetch in _PREFETCHES]
    found: dict[tuple[str, int], list[tuple[float, float]]] = {case: [] for case in cases}
    with scratch(arguments.dir) as folder, progress() as bar:
        report = start_report("Worker pools, durability sync", arguments, folder)
        turns = [] if arguments.jobs else cases * arguments.repeat
        for kind, prefetch in bar.track(turns, description="pools in turn"):
            found[kind, prefetch].append(_run(folder, kind, prefetch, arguments.items))
        jobs: dict[tuple[bool, str], list[float]] = {
            (is_async, kind): [] for is_async in (False, True) for kind in _JOB_KINDS
        }
        for is_async, kind in bar.track(list(jobs) * arguments.repeat, description="jobs in turn"):
            jobs[is_async, kind].append(_run_job(folder, kind, is_async, arguments.items))
    rows: list[dict[str, object]] = []
    for (kind, prefetch), rounds in found.items() if turns else ():
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
    if rows:
        report.table(_POOLS_TABLE, rows)
        if arguments.page:
            write_tables("worker pools", "worker", report, (_POOLS_TABLE,))
    job_rows = [_job_row(jobs, is_async, kind) for is_async, kind in jobs]
    report.table(_JOBS_TABLE, job_rows)
    _judge(report, job_rows)
    if arguments.page:
        write_tables("typed jobs", "worker", report, (_JOBS_TABLE,))
    report.write_json(arguments.json)
    return report.exit_code


if __name__ == "__main__":
    sys.exit(main())
