"""How a read is planned on the driver: its filters, its snapshot, and which task reads what.

Every row is read by exactly one task.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from threading import Event
from typing import Any

from pyspark.sql.datasource import DataSourceReader, EqualTo, Filter, In

from queueber import Queue, Snapshot
from queueber.errors import NotFound, ResourceExhausted
from queueber.model import ItemState, SnapshotRange
from queueber.spark.options import ReadOptions

ROWS_LEAST = 5000
"""A task with fewer rows takes longer to start than to read."""

_OPEN_TRIES = 20
_OPEN_PAUSE_SECONDS = 0.5


@contextlib.contextmanager
def planning(options: ReadOptions) -> Iterator[Queue]:
    """The queue to read; one that does not exist is an error at once."""
    with options.connected() as queue:
        try:
            queue.results_stats()
        except NotFound as error:
            raise NotFound(f"option 'queue': {error}") from None
        yield queue


def open_snapshot(queue: Queue) -> Snapshot:
    """Open a snapshot; when the server has as many as it keeps, retry for some seconds.

    Spark does not say when a read has ended, so snapshots stay until they expire or others replace
    them.
    """
    for _ in range(_OPEN_TRIES):
        with contextlib.suppress(ResourceExhausted):
            return queue.open_snapshot()
        Event().wait(_OPEN_PAUSE_SECONDS)
    return queue.open_snapshot()


def split_offsets(first: int, end: int, splits: int) -> list[tuple[int, int]]:
    """The offsets from `first` to before `end`, in parts of about the same length."""
    count = _tasks(end - first, splits)
    cuts = [first + (end - first) * n // count for n in range(count + 1)]
    return [(a, b) for a, b in pairwise(cuts) if a < b]


def split_items(snapshot: Snapshot, state: ItemState, splits: int) -> list[SnapshotRange]:
    """The items of a state, in up to `splits` ranges; the server knows where to cut."""
    count: int = getattr(snapshot.info, state.value)  # Each state is the name of its count.
    if not count:
        return []
    tasks = _tasks(count, splits)
    return [SnapshotRange()] if tasks == 1 else snapshot.split(state, tasks)


def _tasks(rows: int, splits: int) -> int:
    return max(1, min(splits, rows // ROWS_LEAST))


# --- filters of a DataFrame that Spark leaves to a reader, if an option and its settings allow ----


class PushedFilters:
    """What Spark calls as a reader's `pushFilters`; answers with the filters that Spark keeps.

    Spark refuses a reader that defines `pushFilters` while its setting for pushed filters is off,
    as it is by default. It recognises the inherited method by `__func__`. Ours carries that mark,
    so that a reader works with either setting.
    """

    __func__ = staticmethod(DataSourceReader.pushFilters)

    def __init__(self, push: Callable[[Filter], bool], *, is_on: bool) -> None:
        """`push` takes a filter over and says whether it could."""
        self._push = push
        self._is_on = is_on

    def __call__(self, filters: list[Filter]) -> Iterable[Filter]:
        for each in filters:
            if not self._is_on or not self._push(each):
                yield each


def wanted_values(condition: Filter) -> tuple[str, set[Any]]:
    """A column and the values it may have; "" and none for any other kind of condition."""
    if isinstance(condition, EqualTo):
        return ".".join(condition.attribute), {condition.value}
    if isinstance(condition, In):
        return ".".join(condition.attribute), set(condition.value)
    return "", set()
