"""Many batches: what each costs, how long the store takes to open, and the memory of the server."""

import multiprocessing
import os
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

from bench.engine import engine_queue
from bench.measure import bench_parser, percentile_us, progress, scratch, start_report
from bench.page import write_tables
from bench.resident import resident_mb
from queueber import connect
from queueber.engine.queue.sweep import sweep
from queueber.limits import BATCH_KEEP_MS, MINUTE_MS
from queueber.model import NewItems
from queueber.testing import running_server

_DESCRIPTION = """Add --batches batches of one to three items of 100 B to one queue, a call for
each, and finish their items, so that all are complete: in the engine, unsynced, in a process that
then ends without closing the store, as in a crash. Start a server on it, and measure the time until
it listens, the calls about batches, and its memory. Then let a tenth as many be forgotten because
their time has come, all in the same moment, as the sweeper does it: slice by slice."""

_ENGINE_TABLE = "CPU time of the engine, µs a batch"
_SERVER_TABLE = "A server on it"
_SWEEPER_TABLE = "The sweeper forgets batches, CPU time"

_QUEUE = "bench"
_CONTENT_BYTES = 100
_FINISH_ITEMS = 1000
_STAGES = 10

_OPEN_SECONDS_MAX = 10.0
_RESIDENT_MB_MAX = 300.0
_SLOWDOWN_MAX = 2.0
_DAY_SECONDS = 86_400
_A_DAY = 1_000_000
"""Batches that a queue is to stand: they are forgotten as fast as they come."""
_SHARE_MAX = 0.01
"""Of a core's time that forgetting them may take."""


def _fill_and_crash(folder: Path, batches: int, told: Connection) -> None:
    contents = [os.urandom(_CONTENT_BYTES) for _ in range(3)]
    with engine_queue(folder, _QUEUE) as queue:
        stage = batches // _STAGES
        with progress() as bar:
            for at in bar.track(range(_STAGES), description=f"fill: {batches:,} batches"):
                began = time.process_time()
                for number in range(at * stage, (at + 1) * stage):
                    queue.add_items(NewItems(contents[: number % 3 + 1], batch=f"order-{number}"))
                added = time.process_time()
                while queue.poll(_FINISH_ITEMS):
                    queue.remove()
                ended = time.process_time()
                told.send(((added - began) / stage * 1e6, (ended - added) / stage * 1e6))
        os._exit(0)


def _fill(folder: Path, batches: int) -> list[tuple[float, float]]:
    """For each stage the CPU time of an add, and of finishing a batch, in microseconds."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_fill_and_crash, args=(folder, batches, there))
    process.start()
    figures = [here.recv() for _ in range(_STAGES)]
    process.join()
    return figures


def _forget_due(folder: Path, batches: int) -> list[float]:
    """The CPU time of each slice of a sweep that forgets as many batches, in milliseconds."""
    with engine_queue(folder, _QUEUE) as queue:
        for number in range(batches):
            queue.add_items(NewItems([b"x" * _CONTENT_BYTES], batch=f"order-{number}"))
        while queue.poll(_FINISH_ITEMS):
            queue.remove()
        engine, later_ms = queue.engine, queue.now_ms() + BATCH_KEEP_MS + MINUTE_MS
        slices: list[float] = []
        is_due = True
        while is_due:
            began = time.thread_time()
            is_due = sweep(engine.kernel, engine.queues, later_ms) is not None
            slices.append((time.thread_time() - began) * 1e3)
        if left := queue.queue.counters.batches:
            raise SystemExit(f"{left:,} batches are still there")
        return slices[:-1]


def _timed_us(call: Callable[[int], object], times: int) -> float:
    """The median of calls, one after the other."""
    samples = []
    for at in range(times):
        began = time.perf_counter_ns()
        call(at)
        samples.append(time.perf_counter_ns() - began)
    return percentile_us(samples, 0.5)


def main() -> None:
    parser = bench_parser(_DESCRIPTION)
    parser.add_argument("--batches", type=int, default=1_000_000)
    parser.add_argument("--calls", type=int, default=1000, help="of each kind, to the server")
    parser.add_argument("--page", action="store_true", help="write docs/performance.md")
    arguments = parser.parse_args()
    batches, calls = arguments.batches, arguments.calls
    with scratch(arguments.dir) as folder:
        report = start_report("Many batches", arguments, folder)
        data_dir = folder / "data"
        stages = _fill(data_dir, batches)
        disk_mb = sum(file.stat().st_size for file in data_dir.iterdir()) / 1e6
        with running_server(data_dir=data_dir) as server:
            server.stop()  # the first start has replayed the log
            started = time.perf_counter()
            server.start()
            listen_seconds = time.perf_counter() - started
            opened_mb = resident_mb(server)
            with connect(server.address) as client:
                queue = client.queue(_QUEUE)
                plain_us = _timed_us(lambda _: queue.add(b"x"), calls)
                add_us = _timed_us(lambda at: queue.add(b"x", batch=f"new-{at}"), calls)
                step = max(1, batches // calls)
                receipt_us = _timed_us(lambda at: queue.receipt(f"order-{at * step}"), calls)
                list_us = _timed_us(lambda at: queue.batches(before=at * step + 100), 100)
                calls_mb = resident_mb(server)
                started = time.perf_counter()
                forgotten = queue.forget_batches(unchanged_for=0)
                forget_us = (time.perf_counter() - started) / forgotten * 1e6
                highest_mb = resident_mb(server, "VmHWM")
        slices = _forget_due(folder / "due", batches // _STAGES)
    report.table(
        _ENGINE_TABLE,
        [
            {"batches": (at + 1) * batches // _STAGES, "add": add, "finish": finish}
            for at, (add, finish) in enumerate(stages)
        ],
    )
    figures = (
        ("store on disk, MB", disk_mb),
        ("start to listening, s", listen_seconds),
        ("resident then, MB", opened_mb),
        ("add without a batch, µs", plain_us),
        ("add that begins a batch, µs", add_us),
        ("receipt of any batch, µs", receipt_us),
        ("100 batches of the list, µs", list_us),
        ("resident then, MB", calls_mb),
        ("forget_batches, µs a batch", forget_us),
        ("resident at most, MB", highest_mb),
    )
    forget_due_us = sum(slices) / (batches // _STAGES) * 1e3
    share = forget_due_us * _A_DAY / 1e6 / _DAY_SECONDS
    report.table(_SERVER_TABLE, [{"figure": name, "measured": each} for name, each in figures])
    report.table(
        _SWEEPER_TABLE,
        [
            {"figure": "a batch, µs", "measured": forget_due_us},
            {"figure": "a slice, ms", "measured": sum(slices) / len(slices)},
            {"figure": "the longest slice, ms", "measured": max(slices)},
        ],
    )
    report.verdict(
        f"forgetting a million batches a day takes at most {_SHARE_MAX:.0%} of a core: {share:.2%}",
        is_met=share <= _SHARE_MAX,
    )
    report.verdict(
        f"the server listens within {_OPEN_SECONDS_MAX:g} s: {listen_seconds:.1f} s",
        is_met=listen_seconds <= _OPEN_SECONDS_MAX,
    )
    report.verdict(
        f"resident memory stays below {_RESIDENT_MB_MAX:g} MB: {highest_mb:.0f} MB",
        is_met=highest_mb < _RESIDENT_MB_MAX,
    )
    slowdown = stages[-1][0] / stages[0][0]
    report.verdict(
        f"the last adds take at most {_SLOWDOWN_MAX:g} times as long as the first: {slowdown:.1f}",
        is_met=slowdown <= _SLOWDOWN_MAX,
    )
    if arguments.page:
        write_tables("batches", "batches", report, (_ENGINE_TABLE, _SERVER_TABLE, _SWEEPER_TABLE))
    report.write_json(arguments.json)


if __name__ == "__main__":
    main()
