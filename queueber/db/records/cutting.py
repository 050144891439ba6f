"""Cutting and joining runs: some items of a run leave it, and neighbours become one."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, TypeVar, cast

from queueber.db.records.keys import TIME_BYTES
from queueber.db.records.runs import Entry, Run
from queueber.ids import shifted

T = TypeVar("T")


class Sizes(Protocol):
    """A block, as far as cutting needs to know it."""

    def size(self, start: int, stop: int) -> int:
        """Bytes of the items from one position of the block up to, not including, another."""


def part(run: Run, start: int, stop: int, sizes: Sizes) -> Run:
    """The items from one position of the run up to, not including, another."""
    if stop - start == run.count:
        return run
    at = run.at + start
    return Run(
        shifted(run.last, stop - run.count),
        stop - start,
        at,
        run.span,
        sizes.size(at, at + stop - start),
        run.mark,
        run.block,
    )


def cut(run: Run, count: int, sizes: Sizes) -> tuple[Run, Run]:
    """The first `count` items, and the others; there are some of both."""
    front = part(run, 0, count, sizes)
    last, whole, at, span, size, mark, block = run
    return front, Run(last, whole - count, at + count, span, size - front.size, mark, block)


def pick(run: Run, positions: Sequence[int], sizes: Sizes) -> tuple[list[Run], list[Run]]:
    """The items at some positions of the run, each given once and in order, and the others."""
    picked: list[Run] = []
    left: list[Run] = []
    end = 0
    for start, stop in _stretches(positions):
        if end < start:
            left.append(part(run, end, start, sizes))
        picked.append(part(run, start, stop, sizes))
        end = stop
    if end < run.count:
        left.append(part(run, end, run.count, sizes))
    return picked, left


def _stretches(positions: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Consecutive positions as start and stop."""
    if not positions:
        return
    start, stop = positions[0], positions[-1] + 1
    if stop - start > len(positions):
        stop = start
        for at in positions:
            if at != stop:
                yield start, stop
                start = at
            stop = at + 1
    yield start, stop


def singles(run: Run, sizes: Sizes) -> list[Run]:
    """Each item as a run of its own."""
    return [part(run, at, at + 1, sizes) for at in range(run.count)]


def join(runs: Iterable[Run]) -> list[Run]:
    """The same items in fewer runs: neighbours of one block with one mark become one.

    Only runs that follow each other in the given order are joined.
    """
    joined: list[Run] = []
    for run in runs:
        if joined and _are_neighbours(joined[-1], run):
            _, count, at, span, size, mark, block = joined[-1]
            joined[-1] = Run(run.last, count + run.count, at, span, size + run.size, mark, block)
        else:
            joined.append(run)
    return joined


def _are_neighbours(a: Run, b: Run) -> bool:
    return a.at + a.count == b.at and a.block == b.block and a.mark == b.mark


def join_entries(entries: Iterable[Entry]) -> list[Entry]:
    """As `join`, sorted by due part; only entries of one time are joined."""
    listed = sorted(entries)
    if len(listed) < 2:
        return listed
    joined: list[Entry] = []
    start = 0
    for at, (due, _) in enumerate(listed):
        time = due[:TIME_BYTES]
        if at + 1 == len(listed) or listed[at + 1][0][:TIME_BYTES] != time:
            runs = join([run for _, run in listed[start : at + 1]])
            joined += cast("list[Entry]", [(time + run.last, run) for run in runs])
            start = at + 1
    return joined


def by_entry(
    ids: Iterable[bytes], find: Callable[[bytes], T | None], run_of: Callable[[T], Run]
) -> dict[T, list[int]]:
    """The entries that have some of the ids, each with their positions in its run, in order.

    `find` gets an id and returns the entry that may have it; ids of one run cost one look.
    """
    found: dict[T, list[int]] = {}
    entry: T | None = None
    for item_id in sorted(set(ids)):
        if entry is None or run_of(entry).position_of(item_id) is None:
            entry = find(item_id)
        position = None if entry is None else run_of(entry).position_of(item_id)
        if entry is not None and position is not None:
            found.setdefault(entry, []).append(position)
    return found
