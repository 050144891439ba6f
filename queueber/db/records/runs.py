"""Runs: items with consecutive ids that are in one state, since one time, and have one mark.

Every entry that says which state items are in is about a run: its key has the id of the last item,
its value the rest. A change of state reads and writes a run, however many items it has; what
happens to single items cuts it. An item that is alone is a run of one.

    count 2 | at 2 | span 2 | size 4 | mark 10

The mark says what the items have in common beside their state:

    batch 4 | attempts 2 | group max 2 | priority 1 | flags 1

The contents of a run are in one block (`blocks.py`). A block has `span` ids, and the run begins at
position `at` of it, so a run knows the key of its block. Runs of one block may be in different
states: they never overlap.
"""

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple, NewType, Protocol, TypeVar, cast

from queueber.db.records.keys import TIME_BYTES, Due, due_part
from queueber.ids import ItemId, ids_up_to, shifted
from queueber.limits import ID_BYTES, PARKED_LEVEL, PRIORITY_DEFAULT, PRIORITY_MAX

Mark = NewType("Mark", bytes)
T = TypeVar("T")

_MARK = struct.Struct(">IHHBB")
_HAS_DETAILS = 1
_HOLDS_SLOT = 2
_IS_PARKED = 4

MARK_BYTES = _MARK.size
_GROUP_CEILING = (1 << 16) - 1
MARK_ATTEMPTS_MAX = (1 << 16) - 1
"""A mark counts no further; without a limit of attempts an item may fail more often."""


class MarkFields(NamedTuple):
    batch: int = 0
    """The number of their batch; 0: none."""
    attempts: int = 0
    """How often they have failed."""
    group_max: int = 0
    """A lease with one of these items holds at most so many items; 0: no limit."""
    priority: int = PRIORITY_DEFAULT
    flags: int = 0

    @property
    def has_details(self) -> bool:
        """Whether their block has keys and attributes."""
        return bool(self.flags & _HAS_DETAILS)


def encode_mark(fields: MarkFields) -> Mark:
    return Mark(_MARK.pack(*fields))


def new_mark(batch: int, priority: int, *, has_details: bool) -> Mark:
    return Mark(_MARK.pack(batch, 0, 0, priority, _HAS_DETAILS if has_details else 0))


# The items of a queue have few different marks, and a peek reads that of every item.
@lru_cache(maxsize=1024)
def decode_mark(mark: bytes) -> MarkFields:
    return MarkFields(*_MARK.unpack(mark))


# One field each, for hot paths: `decode_mark` costs several times as much.


def mark_batch(mark: bytes) -> int:
    return int.from_bytes(mark[:4])


def mark_attempts(mark: bytes) -> int:
    return int.from_bytes(mark[4:6])


def mark_group_max(mark: bytes) -> int:
    return int.from_bytes(mark[6:8])


def mark_has_details(mark: bytes) -> bool:
    return bool(mark[9] & _HAS_DETAILS)


def mark_holds_slot(mark: bytes) -> bool:
    """Whether the items count among those of their cap key: leased ones, and ready ones that were
    let go."""
    return bool(mark[9] & _HOLDS_SLOT)


def mark_is_parked(mark: bytes) -> bool:
    return bool(mark[9] & _IS_PARKED)


def mark_level(mark: bytes) -> int:
    """Its level in the index of ready items: 0 is priority 9, 10 are its quarantined items, and 20
    above each level are the items that are parked."""
    level = PRIORITY_MAX - mark[8]
    if mark[9] & _IS_PARKED:
        level += PARKED_LEVEL
    return level + PRIORITY_MAX + 1 if mark_group_max(mark) else level


def with_slot(mark: Mark) -> Mark:
    """The mark of items that count among those of their cap key."""
    return Mark(mark[:9] + bytes([mark[9] & ~_IS_PARKED | _HOLDS_SLOT]))


def parked(mark: Mark) -> Mark:
    return Mark(mark[:9] + bytes([mark[9] | _IS_PARKED]))


def without_slot(mark: Mark) -> Mark:
    return Mark(mark[:9] + bytes([mark[9] & ~_HOLDS_SLOT]))


def with_group_max(mark: bytes, group_max: int) -> Mark:
    """The mark with another limit; one that does not fit is stored as the largest that does."""
    return encode_mark(decode_mark(mark)._replace(group_max=min(group_max, _GROUP_CEILING)))


# --- runs -----------------------------------------------------------------------------------------


class Run(NamedTuple):
    last: ItemId
    """The id of the last item."""
    count: int  # type: ignore[assignment]  # a tuple's own method, which nobody calls
    at: int
    """The position of the first item in the block."""
    span: int
    """How many ids the block has."""
    size: int
    """Bytes of contents, keys and attributes."""
    mark: Mark
    block: ItemId
    """The last id of the block, which is its key. Not stored: the others say it."""

    @property
    def first(self) -> ItemId:
        return shifted(self.last, 1 - self.count)

    @property
    def ids(self) -> list[ItemId]:
        return [self.last] if self.count == 1 else ids_up_to(self.last, self.count)

    @property
    def is_whole_block(self) -> bool:
        return self.count == self.span

    def position_of(self, item_id: bytes) -> int | None:
        """The position of an item in the run; None if it is not in it."""
        if item_id[:8] != self.last[:8] or len(item_id) != ID_BYTES:
            return None
        position = int.from_bytes(item_id[8:]) - int.from_bytes(self.last[8:]) + self.count - 1
        return position if 0 <= position < self.count else None


def make_run(last: ItemId, count: int, at: int, span: int, size: int, mark: Mark) -> Run:
    after = span - at - count
    return Run(last, count, at, span, size, mark, shifted(last, after) if after else last)


Entry = tuple[Due, Run]
"""Of ready or delayed items: when they are visible and the last id, and the run."""

_VALUE = struct.Struct(f">HHHI{MARK_BYTES}s")
_HELD = struct.Struct(f">{ID_BYTES}sHHHI{MARK_BYTES}s")
RUN_BYTES = _VALUE.size
HELD_BYTES = _HELD.size


def encode_run(run: Run) -> bytes:
    """The value of an entry, whose key has the last id."""
    return _VALUE.pack(*run[1:6])


def decode_run(last: bytes, value: bytes) -> Run:
    return make_run(last, *_VALUE.unpack(value))  # type: ignore[arg-type]


def run_count(value: bytes) -> int:
    """How many items a run has, without reading the rest."""
    return int.from_bytes(value[:2])


def decode_entry(due: bytes, value: bytes) -> Entry:
    return due, make_run(due[TIME_BYTES:], *_VALUE.unpack(value))  # type: ignore[return-value,arg-type]


def entry_at(at_ms: int, run: Run) -> Entry:
    return due_part(at_ms, run.last), run


def at_time_of(due: bytes, run: Run) -> Entry:
    """The entry of a run that has the time of another entry."""
    return due[:TIME_BYTES] + run.last, run  # type: ignore[return-value]


def encode_held(runs: Iterable[Run]) -> bytes:
    """What a lease holds: ids included, because a lease has only its own id in its key."""
    return b"".join([_HELD.pack(*run[:6]) for run in runs])


def decode_held(held: bytes) -> list[Run]:
    """Raises `struct.error` if the bytes are no runs."""
    return [make_run(*fields) for fields in _HELD.iter_unpack(held)]


def count_items(runs: Iterable[Run]) -> int:
    items = 0
    for run in runs:  # of which there are few: a list and a sum cost more
        items += run.count
    return items


# --- cutting and joining --------------------------------------------------------------------------


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


# --- dead letters, and the failures of an item ----------------------------------------------------


def encode_dead(died_at_ms: int, reason: int, run: Run) -> bytes:
    return died_at_ms.to_bytes(TIME_BYTES) + bytes([reason]) + encode_run(run)


def decode_dead(last: bytes, value: bytes) -> tuple[int, int, Run]:
    """Died-at, reason, and the run; `last` is in the key."""
    run = decode_run(last, value[TIME_BYTES + 1 :])
    return int.from_bytes(value[:TIME_BYTES]), value[TIME_BYTES], run


def dead_count(value: bytes) -> int:
    """How many dead letters an entry has, without reading the rest."""
    return run_count(value[TIME_BYTES + 1 :])


def encode_attempts(times_ms: list[int], last_error: str) -> bytes:
    return struct.pack(f">H{len(times_ms)}Q", len(times_ms), *times_ms) + last_error.encode()


def decode_attempts(value: bytes) -> tuple[list[int], str]:
    """The times of an item's failures, and its last error."""
    count = int.from_bytes(value[:2])
    end = 2 + count * TIME_BYTES
    return list(struct.unpack(f">{count}Q", value[2:end])), value[end:].decode()
