"""The column families: what is kept, under which key, and why.

Every key begins with the queue's number (4 bytes), so a queue is one range in each family, and
deleting it is one range deletion in each. Numbers are big-endian, times are milliseconds since the
epoch in 8 bytes, ids and leases are UUIDv7 in 16: keys sort as their parts do.

An item is in `items` from add to remove, and all that time in exactly one of `visibility_index`
(ready), `delayed` and `in_progress`. Contents are written once, in `items`; what moves is small.
"""

from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True)
class Profile:
    """How RocksDB keeps a family."""

    write_buffer_bytes: int
    expects_deletes: bool
    """Short-lived keys in time order: compact files where deletions gather."""


_RECORDS = Profile(write_buffer_bytes=8 << 20, expects_deletes=False)
_CONTENTS = Profile(write_buffer_bytes=32 << 20, expects_deletes=True)
_SMALL = Profile(write_buffer_bytes=8 << 20, expects_deletes=True)


class Family(Enum):
    """One row a family: name, key, value, profile."""

    DEFAULT = ("default", "name of the fact", "see db/format.py", _RECORDS)
    QUEUES = ("queues", "queue", "QueueRecord", _RECORDS)
    COUNTERS = (
        "counters",
        "queue",
        "QueueCounters, rewritten by every change of the queue",
        _RECORDS,
    )
    ITEMS = ("items", "queue, id", "StoredItem with the contents", _CONTENTS)
    VISIBILITY_INDEX = (
        "visibility_index",
        "queue, visible-at, id",
        "contents size, 4 bytes",
        _SMALL,
    )
    DELAYED = ("delayed", "queue, visible-at, id", "contents size, 4 bytes", _SMALL)
    IN_PROGRESS = ("in_progress", "queue, id", "lease, contents size (4 bytes)", _SMALL)
    LEASES = ("leases", "queue, lease", "LeaseEntry: expiry and the items it holds", _SMALL)
    LEASE_EXPIRY = ("lease_expiry", "queue, expiry, lease", "empty", _SMALL)

    # An enum hashes its name in Python, which is felt when every put looks its family up.
    __hash__ = object.__hash__

    def __init__(self, family_name: str, key: str, value: str, profile: Profile) -> None:
        self.family_name = family_name
        self.key_parts = key
        self.value_kind = value
        self.profile = profile


QUEUE_FAMILIES = tuple(family for family in Family if family is not Family.DEFAULT)
"""The families in which a queue owns the range of its number."""
