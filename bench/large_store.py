"""A large store: the start-up time of a server on it, and its memory."""

import multiprocessing
import os
import time
from dataclasses import dataclass
from pathlib import Path

from bench.engine import engine_queue
from bench.measure import Shape, bench_parser, progress, scratch, start_report
from bench.resident import resident_mb
from queueber import Queue, connect
from queueber.testing import ServerProcess, running_server

_DESCRIPTION = """Fill a store with --items items of 100 B, 1,000 a call, unsynced, in a process
that then ends without closing it, as in a crash. Start a server on it, which replays the
write-ahead log; stop it, and start another on the closed store. Measure the time of each until it
listens and until the first poll through RPC is answered, and the resident memory then and after
polling, removing and adding --churn items."""

_QUEUE = "bench"
_CONTENT_BYTES = 100
_FILL_ITEMS = 1000
_CALL_ITEMS = 100

_OPEN_SECONDS_MAX = 10.0
_RESIDENT_MB_MAX = 500.0


def _fill_and_crash(folder: Path, items: int) -> None:
    contents = Shape(_FILL_ITEMS, _CONTENT_BYTES).contents()
    with engine_queue(folder, _QUEUE) as queue:
        with progress() as bar:
            for _ in bar.track(range(items // _FILL_ITEMS), description=f"fill: {items:,} items"):
                queue.add(contents)
        # The store is not closed, so what was in memory is only in the log.
        os._exit(0)


def _fill(folder: Path, items: int) -> None:
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=_fill_and_crash, args=(folder, items))
    process.start()
    process.join()
    if process.exitcode != 0:
        raise RuntimeError(f"filling failed with exit code {process.exitcode}")


@dataclass(frozen=True, slots=True)
class Start:
    listen_seconds: float
    poll_seconds: float
    resident_mb: float


def _first_poll(server: ServerProcess, started: float) -> Start:
    """Time the first poll of a server that was started at `started`."""
    listen_seconds = time.perf_counter() - started
    with connect(server.address) as client:
        if not client.queue(_QUEUE).poll(_CALL_ITEMS):
            raise RuntimeError("the store is empty")
        return Start(listen_seconds, time.perf_counter() - started, resident_mb(server))


def _churn(queue: Queue, items: int) -> None:
    contents = Shape(_CALL_ITEMS, _CONTENT_BYTES).contents()
    with progress() as bar:
        for _ in bar.track(range(items // _CALL_ITEMS), description="poll, remove and add"):
            queue.poll(_CALL_ITEMS).remove()
            queue.add(contents)


def main() -> None:
    parser = bench_parser(_DESCRIPTION)
    parser.add_argument("--items", type=int, default=10_000_000, help="in the store")
    parser.add_argument("--churn", type=int, default=100_000, help="polled, removed and added")
    arguments = parser.parse_args()
    with scratch(arguments.dir) as folder:
        report = start_report("A server on a large store", arguments, folder)
        data_dir = folder / "data"
        started = time.perf_counter()
        _fill(data_dir, arguments.items)
        fill_seconds = time.perf_counter() - started
        log_mb = sum(file.stat().st_size for file in data_dir.glob("*.log")) / 1e6
        disk_mb = sum(file.stat().st_size for file in data_dir.iterdir()) / 1e6

        started = time.perf_counter()
        with running_server(data_dir=data_dir) as server:
            crashed = _first_poll(server, started)
            crashed_highest_mb = resident_mb(server, "VmHWM")
            server.stop()
            started = time.perf_counter()
            server.start()
            closed = _first_poll(server, started)
            with connect(server.address) as client:
                _churn(client.queue(_QUEUE), arguments.churn)
                churned_mb = resident_mb(server)
            highest_mb = max(crashed_highest_mb, resident_mb(server, "VmHWM"))
    seconds, memory = f"{_OPEN_SECONDS_MAX:g}", f"{_RESIDENT_MB_MAX:g}"
    figures = (
        ("fill, s", fill_seconds, ""),
        ("store on disk, MB", disk_mb, ""),
        ("of it the log to replay, MB", log_mb, ""),
        ("after a crash: start to listening, s", crashed.listen_seconds, seconds),
        ("after a crash: start to first poll, s", crashed.poll_seconds, seconds),
        ("after a crash: resident at first poll, MB", crashed.resident_mb, memory),
        ("after a stop: start to listening, s", closed.listen_seconds, seconds),
        ("after a stop: start to first poll, s", closed.poll_seconds, seconds),
        ("after a stop: resident at first poll, MB", closed.resident_mb, memory),
        ("resident after churn, MB", churned_mb, memory),
        ("resident at most, MB", highest_mb, memory),
    )
    report.table(
        "Large store",
        [{"figure": name, "measured": value, "limit": limit} for name, value, limit in figures],
    )
    slowest = max(crashed.poll_seconds, closed.poll_seconds)
    report.verdict(
        f"a poll is answered within {seconds} s of the start: {slowest:.1f} s",
        is_met=slowest <= _OPEN_SECONDS_MAX,
    )
    report.verdict(
        f"resident memory stays below {memory} MB: {highest_mb:.0f} MB",
        is_met=highest_mb < _RESIDENT_MB_MAX,
    )
    report.write_json(arguments.json)


if __name__ == "__main__":
    main()
