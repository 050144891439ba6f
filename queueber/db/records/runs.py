"""Runs: items with consecutive ids that are in one state, since one time, and have one mark.

Every entry that says which state items are in is about a run: its key has the id of the last item,
its value the rest. A change of state reads and writes a run, however many items it has; what
happens to single items cuts it. An item that is alone is a run of one.

    count 2 | at 2 | span 2 | size 4 | mark 10

The mark says what the items have in common beside their state:

    batch 4 | attempts 2 | uncharged 1 | group max 1 | priority 1 | flags 1

Items that no lease gave back yet have no flag `_HAS_UNCHARGED`, and both bytes are their group max:
so it was before leases were counted, and marks of then are read as what they are.

The contents of a run are in one block (`blocks.py`). A block has `span` ids, and the run begins at
position `at` of it, so a run knows the key of its block. Runs of one block may be in different
states: they never overlap.
"""

import struct
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple, NewType, TypeVar

from queueber.db.records.keys import TIME_BYTES, Due, due_part
from queueber.ids import ItemId, ids_up_to, shifted
from queueber.limits import ID_BYTES, PARKED_LEVEL, PRIORITY_DEFAULT, PRIORITY_MAX

Mark = NewType("Mark", bytes)
T = TypeVar("T")

_MARK = struct.Struct(">IHHBB")
_HAS_DETAILS = 1
_HOLDS_SLOT = 2
_IS_PARKED = 4
_HAS_OPTIONS = 8
_HAS_TOKEN = 16
_HAS_UNCHARGED = 32
_EXPIRES = 64
_OF_CAPS = _HOLDS_SLOT | _IS_PARKED | _HAS_TOKEN

_NO_BATCH_NO_ATTEMPTS = bytes(6)

MARK_BYTES = _MARK.size
GROUP_CEILING = (1 << 8) - 1
"""Items that are lost in larger groups come back in groups of this size."""
UNCHARGED_MAX = (1 << 8) - 1
"""A mark counts no further."""
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
    uncharged: int = 0
    """How many of their leases ended without counting an attempt, up to `UNCHARGED_MAX`: the items
    were released, or lost together with others."""

    @property
    def has_details(self) -> bool:
        """Whether their block has keys and attributes."""
        return bool(self.flags & _HAS_DETAILS)

    @property
    def leases_ended(self) -> int:
        """How many of their leases have ended: each counted an attempt, or none."""
        return self.attempts + self.uncharged


def encode_mark(fields: MarkFields) -> Mark:
    batch, attempts, group_max, priority, flags, uncharged = fields
    if uncharged:
        group_max = min(group_max, GROUP_CEILING) | uncharged << 8
        flags |= _HAS_UNCHARGED
    return Mark(_MARK.pack(batch, attempts, group_max, priority, flags))


def new_mark(
    batch: int,
    priority: int,
    *,
    has_details: bool,
    has_options: bool = False,
    expires: bool = False,
) -> Mark:
    flags = _HAS_DETAILS if has_details else 0
    if has_options:
        flags |= _HAS_OPTIONS
    if expires:
        flags |= _EXPIRES
    return Mark(_MARK.pack(batch, 0, 0, priority, flags))


# The items of a queue have few different marks, and a peek reads that of every item.
@lru_cache(maxsize=1024)
def decode_mark(mark: bytes) -> MarkFields:
    batch, attempts, group_max, priority, flags = _MARK.unpack(mark)
    if not flags & _HAS_UNCHARGED:
        return MarkFields(batch, attempts, group_max, priority, flags)
    flags ^= _HAS_UNCHARGED
    return MarkFields(batch, attempts, group_max & GROUP_CEILING, priority, flags, group_max >> 8)


# One field each, for hot paths: `decode_mark` costs several times as much.


def mark_batch(mark: bytes) -> int:
    return int.from_bytes(mark[:4])


def mark_attempts(mark: bytes) -> int:
    return int.from_bytes(mark[4:6])


def mark_group_max(mark: bytes) -> int:
    return mark[7] if mark[9] & _HAS_UNCHARGED else mark[6] << 8 | mark[7]


def mark_uncharged(mark: bytes) -> int:
    return mark[6] if mark[9] & _HAS_UNCHARGED else 0


def mark_has_details(mark: bytes) -> bool:
    return bool(mark[9] & _HAS_DETAILS)


def mark_has_nothing_to_tell(mark: bytes) -> bool:
    """Whether a poll tells nothing of the items but their contents."""
    told = _HAS_DETAILS | _HAS_UNCHARGED | _HAS_OPTIONS
    return mark[:6] == _NO_BATCH_NO_ATTEMPTS and not mark[9] & told


def mark_has_options(mark: bytes) -> bool:
    """Whether each of the items has options of its own, in `item_options`."""
    return bool(mark[9] & _HAS_OPTIONS)


def mark_expires(mark: bytes) -> bool:
    """Whether each of the items dies at a time of its own, unless somebody leases it before."""
    return bool(mark[9] & _EXPIRES)


def mark_holds_slot(mark: bytes) -> bool:
    """Whether the items count among those of their cap key: leased ones, and ready ones that were
    let go."""
    return bool(mark[9] & _HOLDS_SLOT)


def mark_is_parked(mark: bytes) -> bool:
    return bool(mark[9] & _IS_PARKED)


def mark_has_token(mark: bytes) -> bool:
    """Whether the items are ready ones that were let go, each with a token set aside for it."""
    return bool(mark[9] & _HAS_TOKEN)


def mark_level(mark: bytes) -> int:
    """Its level in the index of ready items: 0 is priority 9, 10 are its quarantined items, and 20
    above each level are the items that are parked."""
    level = PRIORITY_MAX - mark[8]
    if mark[9] & _IS_PARKED:
        level += PARKED_LEVEL
    return level + PRIORITY_MAX + 1 if mark_group_max(mark) else level


def with_slot(mark: Mark) -> Mark:
    """The mark of items that count among those of their cap key."""
    return _of_caps(mark, _HOLDS_SLOT)


def with_token(mark: Mark) -> Mark:
    """As `with_slot`, of ready items for which a token is set aside."""
    return _of_caps(mark, _HOLDS_SLOT | _HAS_TOKEN)


def parked(mark: Mark) -> Mark:
    return _of_caps(mark, _IS_PARKED)


def without_expiry(mark: Mark) -> Mark:
    return Mark(mark[:9] + bytes([mark[9] & ~_EXPIRES]))


def as_dead(mark: Mark) -> Mark:
    """The mark of ready or delayed items that die: they neither expire nor wait any more."""
    return Mark(mark[:9] + bytes([mark[9] & ~(_EXPIRES | _OF_CAPS)]))


def without_slot(mark: Mark) -> Mark:
    return _of_caps(mark, 0)


def _of_caps(mark: Mark, flags: int) -> Mark:
    return Mark(mark[:9] + bytes([mark[9] & ~_OF_CAPS | flags]))


# A bulk of items that comes back has few different marks, and each of its runs gets a new one.
@lru_cache(maxsize=1024)
def uncharged_again(mark: bytes, group_max: int | None = None) -> Mark:
    """The mark of items whose lease ended without counting an attempt.

    With a `group_max` they are quarantined; one that does not fit is stored as the largest that
    does.
    """
    fields = decode_mark(mark)
    if group_max is None:
        group_max = fields.group_max
    uncharged = min(fields.uncharged + 1, UNCHARGED_MAX)
    return encode_mark(
        fields._replace(uncharged=uncharged, group_max=min(group_max, GROUP_CEILING))
    )


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
