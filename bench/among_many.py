"""Cancel, peek and snapshots among many items: whether their cost depends on how many wait.

Items that came together are stored together, so a cancel of one cuts what the others are stored in.
That is why cancels of scattered items and of every second of neighbours are measured apart.
"""

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from random import Random

from bench.engine import EngineQueue, engine_queue
from bench.measure import Shape, percentile_us
from queueber.db.records.keys import level_part, time_part
from queueber.engine.queue.add import add
from queueber.engine.queue.cancel import cancel
from queueber.engine.queue.peek import look, peek
from queueber.engine.queue.queue_state import take_view
from queueber.engine.queue.split import split
from queueber.ids import made_at_ms
from queueber.limits import (
    MESSAGE_BYTES_CEILING,
    PRIORITY_DEFAULT,
    PRIORITY_MAX,
    SCAN_ITEMS_MAX,
)
from queueber.model import ItemState, NewItems

_ADD_ITEMS = 1000
_CONTENT_BYTES = 100
_PAGE_ITEMS = 100
_PARTS = 8
_POLL_ITEMS = 10

Row = dict[str, object]


class ManyWaiting:
    """A queue in which items wait, and single calls of it."""

    def __init__(self, queue: EngineQueue, items: int) -> None:
        self._queue = queue
        self._random = Random(items)
        new = NewItems(Shape(_ADD_ITEMS, _CONTENT_BYTES).contents())
        calls = -(-items // _ADD_ITEMS)
        self.ids: list[bytes] = [item for _ in range(calls) for item in queue.run(add, new).ids]

    def rows(self, calls: int) -> Iterator[Row]:
        """Cancels come last: they change what is waiting."""
        first = [self._timed(self._peek, b"") for _ in range(calls)]
        yield self._row("peek at the first", first, _PAGE_ITEMS)
        cursors = [self._cursor(self._random.choice(self.ids)) for _ in range(calls)]
        anywhere = [self._timed(self._peek, cursor) for cursor in cursors]
        yield self._row("peek at any", anywhere, _PAGE_ITEMS)
        yield self._row("take a snapshot", [self._timed(self._take) for _ in range(calls)])
        yield self._row("split it", [self._timed_split() for _ in range(calls)])
        yield self._row("read a page of it", self._read_snapshot(), SCAN_ITEMS_MAX)
        # The end stays as it is, for the neighbours.
        neighbours, others = self.ids[-calls:], self.ids[:-calls]
        scattered = self._random.sample(others, min(calls, len(others) // 2))
        yield self._row("cancel any", self._cancel_each(scattered))
        yield self._row("cancel every second", self._cancel_each(neighbours[::2]))
        yield self._row("cancel the others", self._cancel_each(neighbours[1::2]))
        polls = min(calls, (len(others) - len(scattered)) // _POLL_ITEMS)
        times_ns = [self._timed(self._queue.poll, _POLL_ITEMS) for _ in range(polls)]
        yield self._row("poll afterwards", times_ns, _POLL_ITEMS)

    def _row(self, call: str, times_ns: list[int], items: int = 1) -> Row:
        return {
            "call": call,
            "waiting": len(self.ids),
            "calls": len(times_ns),
            "items": items,
            # The lowest is what other load on the machine changes least.
            "lowest µs": min(times_ns) / 1000,
            "p50 µs": percentile_us(times_ns, 0.5),
            "p99 µs": percentile_us(times_ns, 0.99),
        }

    def _timed(self, call: Callable[..., object], *arguments: object) -> int:
        started = time.perf_counter_ns()
        call(*arguments)
        return time.perf_counter_ns() - started

    def _cursor(self, item_id: bytes) -> bytes:
        level = level_part(PRIORITY_MAX - PRIORITY_DEFAULT)
        return level + time_part(made_at_ms(item_id)) + item_id

    def _peek(self, after: bytes) -> None:
        store, queue = self._queue.engine.store, self._queue.queue
        peek(store, queue, ItemState.READY, after, _PAGE_ITEMS, MESSAGE_BYTES_CEILING)

    def _take(self) -> None:
        _, snapshot = take_view(self._queue.engine.store, self._queue.queue)
        snapshot.close()

    def _timed_split(self) -> int:
        view, snapshot = take_view(self._queue.engine.store, self._queue.queue)
        with contextlib.closing(snapshot):
            return self._timed(split, view, ItemState.READY, _PARTS)

    def _read_snapshot(self) -> list[int]:
        """Read all items, page by page."""
        view, snapshot = take_view(self._queue.engine.store, self._queue.queue)
        times_ns: list[int] = []
        read, after = 0, b""
        with contextlib.closing(snapshot):
            while not times_ns or after:
                started = time.perf_counter_ns()
                page, after = look(
                    view, ItemState.READY, after, SCAN_ITEMS_MAX, MESSAGE_BYTES_CEILING
                )
                times_ns.append(time.perf_counter_ns() - started)
                read += len(page)
        if read != len(self.ids):
            raise AssertionError(f"the snapshot has {read} of {len(self.ids)} items")
        return times_ns

    def _cancel_each(self, ids: Iterable[bytes]) -> list[int]:
        return [self._timed(self._cancel, item_id) for item_id in ids]

    def _cancel(self, item_id: bytes) -> None:
        if self._queue.run(cancel, [item_id]) != [True]:
            raise AssertionError(f"{item_id.hex()} was not cancelled")


def measure_among_many(folder: Path, items: int, calls: int) -> list[Row]:
    """The calls with few items waiting, and with many."""
    rows: list[Row] = []
    for waiting in (max(_ADD_ITEMS, items // 100), items):
        with engine_queue(folder / f"among-{waiting}") as queue:
            rows += ManyWaiting(queue, waiting).rows(min(calls, waiting // 4))
    order = list(dict.fromkeys(row["call"] for row in rows))
    return sorted(rows, key=lambda row: order.index(row["call"]))
