"""What caps by an attribute cost: with few keys and many, and when tokens are back."""

import tempfile
import time
from pathlib import Path
from typing import Any

from bench.engine import EngineQueue, engine_queue
from bench.measure import bench_parser, progress, scratch, start_report
from bench.page import write_tables
from queueber.engine.queue.queues import configure
from queueber.engine.queue.sweep import sweep
from queueber.limits import MINUTE_MS
from queueber.model import NewItems, QueueSettings

_DESCRIPTION = """Add --items items of 100 B with an attribute, poll and remove them, 100 a call, in
the engine, unsynced: in a queue without caps, and in queues that cap by that attribute. With a rate
most items are parked if there are few keys; then a minute passes, and the sweeper lets go whose
tokens are back, slice by slice."""

_TABLE = "CPU time of the engine"
_CALL_ITEMS = 100
_CONTENTS = b"x" * 100
_KEYS = (10, 10_000)
_CONCURRENCY: dict[str, Any] = {"cap_by": "who", "cap_by_concurrency_max": 5}
_RATE: dict[str, Any] = {"cap_by": "who", "cap_by_rate_items": 100, "cap_by_rate_ms": MINUTE_MS}
_CAPS: dict[str, dict[str, Any]] = {
    "none": {},
    "5 at once": _CONCURRENCY,
    "100 a minute": _RATE,
    "both": _CONCURRENCY | _RATE,
}
_SLICE_MS_MAX = 100.0


def _cpu_us(began: float, items: int) -> float:
    return (time.thread_time() - began) / max(items, 1) * 1e6


def _sweep_ms(queue: EngineQueue) -> list[float]:
    """The CPU time of each slice of the sweep a minute later, in milliseconds."""
    later_ms = queue.now_ms() + MINUTE_MS
    slices: list[float] = []
    is_due = True
    while is_due:
        began = time.thread_time()
        is_due = sweep(queue.engine.kernel, queue.engine.queues, later_ms) is not None
        slices.append((time.thread_time() - began) * 1e3)
    return slices


def _row(folder: Path, name: str, keys: int, items: int) -> dict[str, object]:
    with tempfile.TemporaryDirectory(dir=folder) as path, engine_queue(Path(path)) as queue:
        queue.run(configure, QueueSettings(**_CAPS[name]))
        for first in range(0, items, _CALL_ITEMS):
            numbers = range(first, first + _CALL_ITEMS)
            attributes = [{"who": f"key {number % keys}"} for number in numbers]
            queue.add_items(NewItems([_CONTENTS] * _CALL_ITEMS, attributes=attributes))
        began, leased = time.thread_time(), 0
        while True:
            parked = queue.queue.counters.parked
            count = queue.poll(_CALL_ITEMS)
            if not count and queue.queue.counters.parked == parked:
                break
            leased += count
            queue.remove()
        waiting = queue.queue.counters.parked
        # An item that is parked was met by a poll as well.
        life_us = _cpu_us(began, leased + waiting)
        slices = _sweep_ms(queue)
        return {
            "cap": name,
            "keys": keys,
            "poll and remove, µs": life_us,
            "leased": leased,
            "parked": waiting,
            "parked a minute later": queue.queue.counters.parked,
            "slices then": len(slices),
            "longest, ms": max(slices),
        }


def main() -> None:
    parser = bench_parser(_DESCRIPTION)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--page", action="store_true", help="write docs/performance.md")
    arguments = parser.parse_args()
    cases = [(name, keys) for name in _CAPS for keys in _KEYS]
    with scratch(arguments.dir) as folder, progress() as bar:
        report = start_report("Caps by an attribute", arguments, folder)
        rows = [
            _row(folder, name, keys, arguments.items)
            for name, keys in bar.track(cases, description="caps")
        ]
    report.table(_TABLE, rows)
    longest = max(float(str(row["longest, ms"])) for row in rows)
    report.verdict(
        f"no slice of the sweeper takes more than {_SLICE_MS_MAX:g} ms: {longest:.0f} ms",
        is_met=longest <= _SLICE_MS_MAX,
    )
    if arguments.page:
        write_tables("caps", "caps", report, (_TABLE,))
    report.write_json(arguments.json)


if __name__ == "__main__":
    main()
