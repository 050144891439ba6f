"""Queues: name, settings and pause, and the counters, which every change of the queue writes.

`QueueRecord` and `QueueCounters` of `schema/storage.capnp`. The latter is encoded by hand, as in
`items.py`: a data word for each number, and two pointers.
"""

import struct
from dataclasses import dataclass, field, fields

from queueber.db.records.keys import DUE_BYTES, NEVER_MS, Due
from queueber.db.records.leases import WORD, list_pointer, padding, root_pointer, words
from queueber.limits import ID_BYTES, LEVELS
from queueber.model import QueueSettings
from queueber.schema import storage
from queueber.wire.queues import read_settings, write_settings


def encode_queue(
    name: str, created_at_ms: int, settings: QueueSettings, paused_until_ms: int = 0
) -> bytes:
    message = storage.QueueRecord.new_message(
        name=name, createdAtMs=created_at_ms, pausedUntilMs=paused_until_ms
    )
    # The fields have the names that they have on the wire.
    write_settings(message, settings)
    encoded: bytes = message.to_bytes()
    return encoded


def decode_queue(value: bytes) -> tuple[str, int, QueueSettings, int]:
    """Name, created-at, settings, paused-until."""
    with storage.QueueRecord.from_bytes(value) as r:
        return r.name, r.createdAtMs, read_settings(r), r.pausedUntilMs


def stored_names(record: type, *apart: str) -> dict[str, str]:
    """The name that the schema has for each field of a dataclass, but for some that are `apart`."""
    return {
        each.name: each.name[0] + each.name.title().replace("_", "")[1:]
        for each in fields(record)
        if each.name not in apart
    }


# --- counters -------------------------------------------------------------------------------------

Level = tuple[int, Due]
"""How many items of a level are ready, and a due part before all of them."""


@dataclass
class Counters:
    """The fields are in the order of the stored struct.

    Every change of a queue copies and encodes them all, so they are in a dict, not in slots.
    """

    ready: int = 0
    delayed: int = 0
    leased: int = 0
    leases: int = 0
    contents_bytes: int = 0
    added_total: int = 0
    polled_total: int = 0
    removed_total: int = 0
    expired_total: int = 0
    extended_total: int = 0
    lease_due_ms: int = NEVER_MS
    delayed_due_ms: int = NEVER_MS
    dead: int = 0
    completed_total: int = 0
    failed_total: int = 0
    released_total: int = 0
    died_total: int = 0
    redriven_total: int = 0
    cancelled_total: int = 0
    duplicates_total: int = 0
    leases_total: int = 0
    forgets: int = 0
    forget_due_ms: int = NEVER_MS
    batches: int = 0
    last_batch: int = 0
    quarantined: int = 0
    """Quarantined items that are not dead: their mark has a limit on items in one lease."""
    rate_full_at_us: int = 0
    """When the queue's rate allows a full burst again."""
    slots: int = 0
    """Items that count among those of their cap key: leased ones, and ready ones that were let
    go."""
    parked: int = 0
    """Ready items that wait for a slot of their cap key."""
    caps_to_review: int = 0
    """1: the cap of a cap key was changed, and some keys may not have been looked at since."""
    callbacks: int = 0
    """Callbacks of batches whose item was not added yet."""
    callback_records: int = 0
    """All callbacks, also those whose item was added."""
    cap_dues: int = 0
    """Entries of `cap_due`: cap keys to be looked at when tokens of theirs are back."""
    cap_due_ms: int = NEVER_MS
    expiring: int = 0
    """Items that die at a time of their own, unless somebody leases them before."""
    expiry_due_ms: int = NEVER_MS
    """None of them does so before this."""
    waiting: int = 0
    """Delayed items that wait for others."""
    waits_due: int = 0
    """Notes of what they waited for and has ended."""
    dead_dropped_total: int = 0
    """Dead letters that were deleted because of their age."""
    last_note: int = 0
    """The number of the newest note; the notes that are due have the last numbers."""
    unclaimed_total: int = 0
    """Items that died because nobody leased them in time."""
    last_id: bytes = bytes(ID_BYTES)
    levels: dict[int, Level] = field(default_factory=dict)
    """By level; only levels with ready items."""

    def copy(self) -> "Counters":
        twin = object.__new__(Counters)
        vars(twin).update(vars(self))
        twin.levels = self.levels.copy()
        return twin

    def differs_in_low_marks_only(self, other: "Counters") -> bool:
        """Whether the two tell the same of the items, and differ at most in when to look next."""
        twin = other.copy()
        twin.lease_due_ms = self.lease_due_ms
        twin.delayed_due_ms = self.delayed_due_ms
        twin.forget_due_ms = self.forget_due_ms
        twin.cap_due_ms = self.cap_due_ms
        twin.expiry_due_ms = self.expiry_due_ms
        return twin == self

    @property
    def items(self) -> int:
        """Items in any state."""
        return self.ready + self.delayed + self.leased + self.dead


_NAMES = stored_names(Counters, "last_id", "levels")

_HEAD = struct.Struct(f"<II Q {len(_NAMES)}Q QQ {ID_BYTES}s")
_FIXED_WORDS = _HEAD.size // WORD - 1
_LEVEL = struct.Struct(f">BQ{DUE_BYTES}s")

# For each number of levels: the length of the message, the pointer to the levels, the padding.
_LAYOUTS = [
    (_FIXED_WORDS + words(size), list_pointer(2, size), padding(size))
    for size in range(0, (LEVELS + 1) * _LEVEL.size, _LEVEL.size)
]

_ROOT = root_pointer(len(_NAMES), 2)
_LAST_ID_POINTER = list_pointer(1, ID_BYTES)


def encode_counters(counters: Counters) -> bytes:
    # All fields at once, in their order, takes less than each by its name.
    *numbers, last_id, levels = vars(counters).values()
    message_words, levels_pointer, end = _LAYOUTS[len(levels)]
    head = _HEAD.pack(0, message_words, _ROOT, *numbers, _LAST_ID_POINTER, levels_pointer, last_id)
    if len(levels) == 1:
        ((level, (count, low)),) = levels.items()
        return head + _LEVEL.pack(level, count, low) + end
    return head + b"".join([_LEVEL.pack(each, *levels[each]) for each in sorted(levels)]) + end


def decode_counters(value: bytes) -> Counters:
    with storage.QueueCounters.from_bytes(value) as c:
        counters = Counters(*[getattr(c, stored_name) for stored_name in _NAMES.values()])
        counters.last_id = bytes(c.lastId)
        counters.levels = {
            level: (count, low) for level, count, low in _LEVEL.iter_unpack(bytes(c.levels))
        }
        return counters
