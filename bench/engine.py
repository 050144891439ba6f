"""The engine alone: add, poll and remove without RPC, synced as the server does it."""

import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from random import Random
from typing import Any, TypeVar

from bench.measure import (
    OPERATIONS,
    SECOND_NS,
    SHAPES,
    Rate,
    Round,
    Shape,
    bench_parser,
    progress,
    rate_of,
    scratch,
    start_report,
)
from queueber.clock import SystemClock
from queueber.db.store.contract import Store
from queueber.db.store.rocks import RocksStore
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.open import Engine, open_engine
from queueber.engine.queue.add import add
from queueber.engine.queue.complete import complete
from queueber.engine.queue.poll import poll
from queueber.engine.queue.queue_state import QueueState
from queueber.engine.queue.remove import remove
from queueber.ids import IdSource
from queueber.limits import MESSAGE_BYTES_CEILING, MINUTE_MS
from queueber.model import NewItems, Polled, QueueSettings

_DESCRIPTION = """Measure the engine without RPC: add, poll and remove, with 1 and 100 items a call,
contents of 100 B and 1 KiB. "each" syncs after every call. "group" writes on one thread while
another syncs without pause: a call counts once a sync that began after its write has ended, and up
to --window calls are outstanding. That is the engine's capacity with group commit, to which the RPC
figures are compared. "off" never syncs. Polls and removes drain the added items, so they may end
early."""

T = TypeVar("T")
Call = Callable[[], int]
"""One call; returns how many items it moved, 0 if none is left."""
Rounds = dict[str, Round]


@dataclass(slots=True)
class EngineQueue:
    """A queue in an engine, and the leases that polls have taken."""

    engine: Engine
    queue: QueueState
    now_ms: Callable[[], int] = field(default_factory=lambda: SystemClock().now_ms)
    leases: deque[Polled] = field(default_factory=deque)

    def add(self, contents: list[bytes]) -> int:
        return self.add_items(NewItems(contents))

    def add_items(self, items: NewItems) -> int:
        return len(self.run(add, items).ids)

    def run(self, operation: Callable[..., T], *arguments: Any, **named: Any) -> T:
        """Run an operation as the service does."""
        tx = Transaction(self.engine.kernel, self.now_ms(), self.queue)
        answer = operation(tx, *arguments, **named)
        tx.commit()
        return answer

    def poll(self, count: int, lease_ms: int = 10 * MINUTE_MS) -> int:
        polled = self.run(poll, [count], lease_ms=lease_ms, answer_bytes_max=MESSAGE_BYTES_CEILING)[
            0
        ]
        if polled.ids:
            self.leases.append(polled)
        return len(polled.ids)

    def remove(self) -> int:
        """Remove the items of the oldest lease."""
        if not self.leases:
            return 0
        lease = self.leases.popleft()
        return sum(self.run(remove, lease.ids, [lease.lease_id] * len(lease.ids)))

    def complete(self, results: list[bytes]) -> int:
        """Complete the items of the oldest lease."""
        if not self.leases:
            return 0
        lease = self.leases.popleft()
        leases = [lease.lease_id] * len(lease.ids)
        return sum(self.run(complete, lease.ids, leases, results))


@contextmanager
def engine_queue(folder: Path, name: str = "bench") -> Iterator[EngineQueue]:
    with RocksStore(folder) as store:
        yield new_engine_queue(store, name)


def new_engine_queue(store: Store, name: str = "bench") -> EngineQueue:
    engine = open_engine(store, IdSource(Random()))
    tx = Transaction(engine.kernel, SystemClock().now_ms(), None)
    engine.queues.create(tx, name, QueueSettings())
    tx.commit()
    return EngineQueue(engine, engine.queues.get(name))


def run_each(call: Call, sync: Callable[[], None], seconds: float) -> Round:
    """Call and sync, one after the other."""
    calls_ns: list[int] = []
    items = 0
    clock = time.perf_counter_ns
    started = ended = clock()
    while ended - started < seconds * SECOND_NS:
        began = ended
        moved = call()
        if not moved:
            break
        sync()
        ended = clock()
        calls_ns.append(ended - began)
        items += moved
    return Round(items, ended - started, calls_ns)


def run_group(call: Call, sync: Callable[[], None], seconds: float, window: int) -> Round:
    """Call on this thread while another syncs; each sync covers the calls made before it."""
    written: SimpleQueue[int | None] = SimpleQueue()
    synced: SimpleQueue[int] = SimpleQueue()
    calls_ns: list[int] = []
    clock = time.perf_counter_ns

    def sync_until_told() -> None:
        is_over = False
        while not is_over:
            taken = [written.get()]
            taken += [written.get() for _ in range(written.qsize())]
            is_over = None in taken
            group = [began for began in taken if began is not None]
            if group:
                sync()
                ended = clock()
                calls_ns.extend(ended - began for began in group)
                synced.put(len(group))

    thread = threading.Thread(target=sync_until_told, name="bench-sync")
    thread.start()
    items = outstanding = 0
    started = began = clock()
    while began - started < seconds * SECOND_NS:
        moved = call()
        if not moved:
            break
        items += moved
        written.put(began)
        outstanding += 1
        while outstanding == window or not synced.empty():
            outstanding -= synced.get()
        began = clock()
    written.put(None)
    thread.join()
    return Round(items, clock() - started, calls_ns)


def run_rounds(folder: Path, shape: Shape, seconds: float, mode: str, window: int) -> Rounds:
    """Add for a while, then poll and remove the added items, on a new store."""
    with tempfile.TemporaryDirectory(dir=folder) as path, engine_queue(Path(path)) as queue:
        contents = shape.contents()
        calls: dict[str, Call] = {
            "add": lambda: queue.add(contents),
            "poll": lambda: queue.poll(shape.items),
            "remove": queue.remove,
        }
        sync = queue.engine.store.sync if mode != "off" else lambda: None
        if mode == "group":
            return {name: run_group(calls[name], sync, seconds, window) for name in OPERATIONS}
        return {name: run_each(calls[name], sync, seconds) for name in OPERATIONS}


def main() -> None:
    parser = bench_parser(_DESCRIPTION)
    parser.add_argument("--seconds", type=float, default=1.0, help="how long a round adds")
    parser.add_argument("--repeat", type=int, default=3, help="rounds of each kind")
    parser.add_argument("--window", type=int, default=8, help='calls outstanding in "group"')
    arguments = parser.parse_args()
    kinds = [(shape, mode) for shape in SHAPES for mode in ("each", "group", "off")]
    rounds: dict[tuple[Shape, str], list[Rounds]] = {kind: [] for kind in kinds}
    with scratch(arguments.dir) as folder, progress() as bar:
        report = start_report("Engine, no RPC", arguments, folder)
        for shape, mode in bar.track(arguments.repeat * kinds, description="engine"):
            found = run_rounds(folder, shape, arguments.seconds, mode, arguments.window)
            rounds[shape, mode].append(found)
    report.table(
        "Engine",
        [
            _row(shape, name, mode, rate_of([each[name] for each in rounds[shape, mode]]))
            for name in OPERATIONS
            for shape, mode in kinds
        ],
    )
    report.write_json(arguments.json)


def _row(shape: Shape, name: str, mode: str, rate: Rate) -> dict[str, object]:
    return {
        "call": name,
        "items": shape.items,
        "bytes": shape.content_bytes,
        "synced": mode,
        **rate.shown(),
    }


if __name__ == "__main__":
    main()
