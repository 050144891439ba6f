"""What a queue pays for features that it does not use, but others of its store do: nothing."""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from statistics import median

from bench.engine import EngineQueue
from bench.measure import bench_parser, progress, scratch, start_report
from bench.page import write_tables
from queueber.db.store.rocks import RocksStore
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.open import Engine, open_engine
from queueber.ids import IdSource
from queueber.limits import MINUTE_MS
from queueber.model import Callback, NewItems, QueueSettings, Schedule

_DESCRIPTION = """Add, poll and remove items of 100 B, 100 a call, in the engine, unsynced, in a
queue without caps, schedules, batches or callbacks: alone in its store, and beside a queue that has
them. Rounds take turns, so that they meet the same machine, and the ratio of CPU times is the
median of those of the rounds. What such a queue costs more than one of an earlier commit
`python -m bench.quick --engine COMMIT` shows. The exit code is 1 if a ratio is above 1.05."""

_CALL_ITEMS = 100
_CONTENTS = b"x" * 100
_SCHEDULES = 1000
_BATCHES = 1000
_RATIO_MAX = 1.05
_TABLE = "A queue that uses none of it"
_OTHER = "other"


def _nothing(engine: Engine) -> None: ...


def _caps(engine: Engine) -> None:
    """Half of the items are parked, the others leased."""
    settings = QueueSettings(
        cap_by="who", cap_by_concurrency_max=1, rate_items=1000, rate_ms=MINUTE_MS
    )
    other = _other(engine, settings)
    who = [{"who": f"key {number // 2}"} for number in range(_CALL_ITEMS)]
    for _ in range(10):
        other.add_items(NewItems([_CONTENTS] * _CALL_ITEMS, attributes=who))
        other.poll(_CALL_ITEMS)


def _schedules(engine: Engine) -> None:
    _other(engine, QueueSettings())
    for number in range(_SCHEDULES):
        tx = Transaction(engine.kernel, 1, None)
        engine.schedules.put(tx, Schedule(f"schedule {number}", "0 3 * * *", _OTHER))
        tx.commit()


def _callbacks(engine: Engine) -> None:
    other = _other(engine, QueueSettings())
    for number in range(_BATCHES):
        other.add_items(NewItems([_CONTENTS], batch=f"batch {number}"))
        callback = Callback(_OTHER, _CONTENTS)
        other.run(engine.flow.callbacks(other.queue).put, f"batch {number}", callback)


_BESIDE: dict[str, Callable[[Engine], None]] = {
    "nothing": _nothing,
    "a queue with caps": _caps,
    f"{_SCHEDULES:,} schedules": _schedules,
    f"{_BATCHES:,} batches with callbacks": _callbacks,
}


def _other(engine: Engine, settings: QueueSettings) -> EngineQueue:
    tx = Transaction(engine.kernel, 1, None)
    engine.queues.create(tx, _OTHER, settings)
    tx.commit()
    return EngineQueue(engine, engine.queues.get(_OTHER))


def _round(folder: Path, beside: str, items: int) -> float:
    """CPU time of the life of an item, in µs."""
    with tempfile.TemporaryDirectory(dir=folder) as path, RocksStore(Path(path)) as store:
        engine = open_engine(store, IdSource(Random(1)))
        _BESIDE[beside](engine)
        tx = Transaction(engine.kernel, 1, None)
        engine.queues.create(tx, "q", QueueSettings())
        tx.commit()
        queue = EngineQueue(engine, engine.queues.get("q"))
        began = time.thread_time()
        for _ in range(items // _CALL_ITEMS):
            queue.add([_CONTENTS] * _CALL_ITEMS)
            queue.poll(_CALL_ITEMS)
            queue.remove()
        return (time.thread_time() - began) / items * 1e6


def main() -> int:
    parser = bench_parser(_DESCRIPTION)
    parser.add_argument("--items", type=int, default=100_000, help="of one round")
    parser.add_argument("--repeat", type=int, default=15, help="rounds of each kind")
    parser.add_argument("--page", action="store_true", help="write docs/performance.md")
    arguments = parser.parse_args()
    took: dict[str, list[float]] = {beside: [] for beside in _BESIDE}
    with scratch(arguments.dir) as folder, progress() as bar:
        report = start_report("Features that a queue does not use", arguments, folder)
        for beside in bar.track(list(_BESIDE) * arguments.repeat, description="in turn"):
            took[beside].append(_round(folder, beside, arguments.items))
    alone = took["nothing"]
    ratios = {
        beside: median(us / before for us, before in zip(rounds, alone, strict=True))
        for beside, rounds in took.items()
    }
    rows: list[dict[str, object]] = [
        {"beside it": beside, "CPU µs/item": median(took[beside]), "times alone": f"{ratio:.2f}"}
        for beside, ratio in ratios.items()
    ]
    report.table(_TABLE, rows)
    worst = max(ratios.values())
    report.verdict(
        f"what others use costs at most {_RATIO_MAX:g} times the CPU time: {worst:.2f}",
        is_met=worst <= _RATIO_MAX,
    )
    if arguments.page:
        write_tables("unused features", "unused", report, (_TABLE,))
    report.write_json(arguments.json)
    return report.exit_code


if __name__ == "__main__":
    sys.exit(main())
