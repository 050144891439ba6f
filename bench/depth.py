"""Depth: whether the cost of a poll depends on how many items the queue has or had."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rich.progress import Progress

from bench.among_many import measure_among_many
from bench.engine import EngineQueue, engine_queue
from bench.measure import (
    SECOND_NS,
    Shape,
    bench_parser,
    percentile_us,
    progress,
    scratch,
    start_report,
)
from queueber.clock import ManualClock
from queueber.engine.queue.sweep import sweep
from queueber.limits import MINUTE_MS

_DESCRIPTION = """Measure a poll and a remove of 10 items on the engine, unsynced: at the start,
after --items, 10 times and 100 times as many have come and gone, and with as many waiting; each
time in turn with a new store, to which the ratios refer. Then measure the sweep after many leases
that ended long before their expiry and left only deleted entries: as their expiry times pass one by
one, and all at once after a long pause. Last, measure cancels, peeks and snapshots with --waiting
items in the queue, and with a hundredth of them."""

_CALL_ITEMS = 10
_BULK_ITEMS = 1000
_CONTENT_BYTES = 100
_FACTORS = (1, 10, 100)
_TURNS = 10

# By a simulated clock: leases are taken over 30 s, each for 60 s, while one lasts.
_TAKING_MS = 30_000
_LEASE_MS = MINUTE_MS
_LASTING_LEASE_MS = 10 * MINUTE_MS
_PAUSE_MS = 2 * MINUTE_MS


class Calls:
    """Polls and removes at the head of a queue, which gets as many items as it loses."""

    def __init__(self, queue: EngineQueue) -> None:
        self._queue = queue
        self._contents = Shape(_CALL_ITEMS, _CONTENT_BYTES).contents()
        self.polls_ns: list[int] = []
        self.removes_ns: list[int] = []

    def run(self, calls: int) -> None:
        for _ in range(calls):
            self._queue.add(self._contents)
        for _ in range(calls):
            self.polls_ns.append(_timed(lambda: self._queue.poll(_CALL_ITEMS)))
            self.removes_ns.append(_timed(self._queue.remove))

    @property
    def items_per_second(self) -> float:
        elapsed_ns = sum(self.polls_ns) + sum(self.removes_ns)
        return len(self.polls_ns) * _CALL_ITEMS * SECOND_NS / elapsed_ns


def _measure(situation: str, queue: EngineQueue, folder: Path, calls: int) -> dict[str, object]:
    """Measure the queue and a new one in turn, so that other load on the machine affects both."""
    with tempfile.TemporaryDirectory(dir=folder) as path, engine_queue(Path(path)) as other:
        deep, fresh = Calls(queue), Calls(other)
        for _ in range(_TURNS):
            fresh.run(calls // _TURNS)
            deep.run(calls // _TURNS)
    row: dict[str, object] = {"situation": situation}
    for name, deep_ns, fresh_ns in (
        ("poll", deep.polls_ns, fresh.polls_ns),
        ("remove", deep.removes_ns, fresh.removes_ns),
    ):
        p50_us = percentile_us(deep_ns, 0.5)
        row[f"{name} p50 µs"] = p50_us
        row[f"{name} p99 µs"] = percentile_us(deep_ns, 0.99)
        row[f"{name} p50 / new store"] = p50_us / percentile_us(fresh_ns, 0.5)
    row["items/s"] = round(deep.items_per_second)
    row["items/s / new store"] = deep.items_per_second / fresh.items_per_second
    return row


def _timed(call: Callable[[], object]) -> int:
    started = time.perf_counter_ns()
    call()
    return time.perf_counter_ns() - started


def _come(queue: EngineQueue, items: int, bar: Progress, label: str) -> None:
    contents = Shape(_BULK_ITEMS, _CONTENT_BYTES).contents()
    for _ in bar.track(range(items // _BULK_ITEMS), description=label):
        queue.add(contents)


def _come_and_go(queue: EngineQueue, items: int, bar: Progress, label: str) -> None:
    contents = Shape(_BULK_ITEMS, _CONTENT_BYTES).contents()
    for _ in bar.track(range(items // _BULK_ITEMS), description=label):
        queue.add(contents)
        queue.poll(_BULK_ITEMS)
        queue.remove()


def _measure_depth(folder: Path, items: int, calls: int, bar: Progress) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    with engine_queue(folder / "gone") as queue:
        rows.append(_measure("at the start", queue, folder, calls))
        gone = 0
        for factor in _FACTORS:
            _come_and_go(queue, factor * items - gone, bar, f"{factor * items:,} come and go")
            gone = factor * items
            rows.append(_measure(f"after {gone:,} have gone", queue, folder, calls))
    with engine_queue(folder / "waiting") as queue:
        waiting = 0
        for factor in _FACTORS:
            _come(queue, factor * items - waiting, bar, f"{factor * items:,} come")
            waiting = factor * items
            rows.append(_measure(f"with {waiting:,} waiting", queue, folder, calls))
    return rows


# --- the sweep ------------------------------------------------------------------------------------


def _measure_sweep(folder: Path, leases: int, bar: Progress) -> list[dict[str, object]]:
    """One lease lasts; all others, which would expire before it, end as soon as they are taken."""
    rows: list[dict[str, object]] = []
    for situation, pause_ms in (("as time passes", 0), ("after a pause", _PAUSE_MS)):
        clock = ManualClock()
        with engine_queue(folder / f"{leases}-{pause_ms}") as queue:
            queue.now_ms = clock.now_ms
            _take_and_end(queue, clock, leases, bar)
            clock.advance(pause_ms)
            sweeps_ns = _sweep_all(queue, clock)
        rows.append(
            {
                "leases ended early": leases,
                "situation": situation,
                "sweeps": len(sweeps_ns),
                "p50 µs": percentile_us(sweeps_ns, 0.5),
                "p99 µs": percentile_us(sweeps_ns, 0.99),
                "worst µs": max(sweeps_ns) / 1000,
            }
        )
    return rows


def _take_and_end(queue: EngineQueue, clock: ManualClock, leases: int, bar: Progress) -> None:
    contents = Shape(_BULK_ITEMS, _CONTENT_BYTES).contents()
    queue.add(contents[:1])
    queue.poll(1, _LASTING_LEASE_MS)
    queue.leases.clear()
    leases_per_ms = max(1, leases // _TAKING_MS)
    for at in bar.track(range(leases), description=f"{leases:,} leases end early"):
        if at % _BULK_ITEMS == 0:
            queue.add(contents)
        if at % leases_per_ms == 0:
            clock.advance(1)
        queue.poll(1, _LEASE_MS)
        queue.remove()


def _sweep_all(queue: EngineQueue, clock: ManualClock) -> list[int]:
    """Sweep whenever the agenda says so, until only the lasting lease is left to wait for."""
    engine = queue.engine
    ends_at_ms = clock.now_ms() + _LEASE_MS + _PAUSE_MS
    sweeps_ns = []
    while (due_ms := engine.agenda.next_ms()) < ends_at_ms:
        clock.advance(max(0, due_ms - clock.now_ms()))
        sweeps_ns.append(_timed(lambda: sweep(engine.kernel, engine.queues, clock.now_ms())))
    return sweeps_ns


def main() -> None:
    parser = bench_parser(_DESCRIPTION)
    parser.add_argument("--items", type=int, default=30_000, help="and 10 and 100 times as many")
    parser.add_argument("--calls", type=int, default=1000, help="measured in each situation")
    parser.add_argument("--leases", type=int, default=300_000, help="and a tenth of it")
    parser.add_argument(
        "--waiting", type=int, default=1_000_000, help="for cancels, peeks and snapshots"
    )
    arguments = parser.parse_args()
    with scratch(arguments.dir) as folder, progress() as bar:
        report = start_report("Depth", arguments, folder)
        depth = _measure_depth(folder, arguments.items, arguments.calls, bar)
        sweeps = [
            row
            for leases in (arguments.leases // 10, arguments.leases)
            for row in _measure_sweep(folder, leases, bar)
        ]
        among_many = measure_among_many(folder, arguments.waiting, arguments.calls)
    report.table(f"Poll and remove of {_CALL_ITEMS} items, unsynced", depth)
    report.table("Sweep over leases that ended early", sweeps)
    report.table("Cancels, peeks and snapshots, unsynced", among_many)
    report.write_json(arguments.json)


if __name__ == "__main__":
    main()
