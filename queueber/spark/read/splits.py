"""How rows are divided among tasks, so that every row is read by exactly one of them."""

from itertools import pairwise

from queueber import Snapshot
from queueber.model import ItemState, SnapshotRange

ROWS_LEAST = 5000
"""A task with fewer rows takes longer to start than to read."""


def split_offsets(first: int, end: int, splits: int) -> list[tuple[int, int]]:
    """The offsets from `first` to before `end`, in parts of about the same length."""
    count = _tasks(end - first, splits)
    cuts = [first + (end - first) * n // count for n in range(count + 1)]
    return [(a, b) for a, b in pairwise(cuts) if a < b]


def split_items(
    snapshot: Snapshot, state: ItemState, count: int, splits: int
) -> list[SnapshotRange]:
    """The `count` items of a state, in up to `splits` ranges; the server knows where to cut."""
    if not count:
        return []
    tasks = _tasks(count, splits)
    return [SnapshotRange()] if tasks == 1 else snapshot.split(state, tasks)


def _tasks(rows: int, splits: int) -> int:
    return max(1, min(splits, rows // ROWS_LEAST))
