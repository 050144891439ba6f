"""The column families: what each stores, and under which key.

Keys begin with the number (4 bytes) of what they belong to, so a queue is one range in each family,
and deleting it is one range deletion in each. Queues, topics, groups and the logs of partitions
have numbers of one kind, and none is used twice. A group that shares messages is a queue whose
contents are in the logs of its topic. Numbers are big-endian, times are milliseconds since the
epoch in 8 bytes, ids and leases are UUIDv7 in 16: keys sort as their parts do.

An item is in `items` from its add until it is removed or completed, and meanwhile in exactly one of
`visibility_index` (ready), `delayed`, a lease of `leases` (leased) and `dead`. Its contents are
written once, in `items`; a change of state moves only a small entry with the item's mark (see
`records/keys.py`).
"""

from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True)
class Profile:
    """How RocksDB stores a family."""

    write_buffer_bytes: int
    expects_deletes: bool
    """Keys are short-lived: RocksDB compacts files with many deletions early."""


_RECORDS = Profile(write_buffer_bytes=8 << 20, expects_deletes=False)
_CONTENTS = Profile(write_buffer_bytes=32 << 20, expects_deletes=True)
_SMALL = Profile(write_buffer_bytes=8 << 20, expects_deletes=True)


class Family(Enum):
    """One row for each family: name, key, value, and profile if its entries are not small."""

    DEFAULT = ("default", "a name", "see docs/storage-format.md", _RECORDS)
    QUEUES = ("queues", "queue", "QueueRecord", _RECORDS)
    COUNTERS = (
        "counters",
        "queue",
        "QueueCounters, rewritten by every change of the queue",
        _RECORDS,
    )
    ITEMS = ("items", "queue, last id of the block", "a block of contents", _CONTENTS)
    LEFTOVERS = (
        "leftovers",
        "queue, last id of the block",
        "what is left of a block of which some items are gone: bytes, and a bit for each id",
    )
    VISIBILITY_INDEX = (
        "visibility_index",
        "queue, level (1 byte: 9 - priority, quarantined 19 - priority, parked 20 more), "
        "visible-at, last id",
        "run",
    )
    DELAYED = ("delayed", "queue, visible-at, last id", "run")
    PLACES = (
        "places",
        "queue, last id",
        "visible-at of a ready or delayed run, if it is not the time in the ids",
    )
    DEAD = ("dead", "queue, last id", "died-at, reason (1 byte), run")
    LEASES = ("leases", "queue, lease", "LeaseEntry: expiry, and the runs that it holds")
    LEASE_EXPIRY = ("lease_expiry", "queue, expiry, lease", "empty")
    HOLDERS = (
        "holders",
        "queue, last id of the block, lease",
        "empty; the lease holds items of that block",
    )
    ATTEMPTS = ("attempts", "queue, id", "when an item failed, and how the last times")
    ITEM_OPTIONS = (
        "item_options",
        "queue, id",
        "what an item has of its own: attempts, backoff, time limit, expiry",
    )
    ITEM_EXPIRY = ("item_expiry", "queue, expires-at, id", "empty")
    KEYS = (
        "keys",
        "queue, digest of the key",
        "id, forget-at; a byte more once its window is over, as long as the item may be there",
    )
    PRODUCERS = (
        "producers",
        "queue, digest of the producer's id (, sequence)",
        "epoch and last sequence (the answer to that call)",
    )
    BATCHES = ("batches", "queue, batch number (4 bytes)", "BatchRecord: sums, digests", _RECORDS)
    BATCH_NAMES = ("batch_names", "queue, digest of the name", "batch number", _RECORDS)
    FORGET = (
        "forget",
        "queue, forget-at, 16 bytes",
        "the kind of record to forget (k, p, b, l, c or t), and for k and t what it names",
    )
    LOADS = (
        "loads",
        "queue, 0, digest of the name (, partition (3 bytes), digest of the attempt); or "
        "queue, 1, digest of the name",
        "LoadRecord (LoadPart); or LoadedRecord",
        _RECORDS,
    )
    LOGS = ("logs", "log (, name of a reader)", "the log's head (the reader's offset)", _RECORDS)
    LOG_BLOCKS = (
        "log_blocks",
        "log, offset of the last row",
        "a block of rows, or of a topic's messages",
        _CONTENTS,
    )
    TOPICS = ("topics", "topic", "TopicRecord", _RECORDS)
    TOPIC_NAMES = ("topic_names", "name or alias of a topic", "topic", _RECORDS)
    GROUPS = ("groups", "topic, name of the group", "GroupRecord", _RECORDS)
    SCHEMAS = (
        "schemas",
        "topic, 0 or 1 (1 byte), version (4 bytes)",
        "0: the offset from which on the version holds, and when it was set; 1: the document",
        _RECORDS,
    )
    ROUTES = (
        "routes",
        "queue, 0, 1 or 2 (1 byte: insert, update, delete), topic",
        "RouteRecord: which of these changes of the queue's items the topic gets",
        _RECORDS,
    )
    SCHEDULES = (
        "schedules",
        "queue, name of the schedule",
        "ScheduleRecord: what is added to the queue, and when next",
        _RECORDS,
    )
    CALLBACKS = (
        "callbacks",
        "queue, 0 or 1 (1 byte), batch number (4 bytes)",
        "0: CallbackRecord, the item that is added once the batch is complete; 1: the queue that "
        "is to get it now",
        _RECORDS,
    )
    WAITS = ("waits", "queue, id", "what a delayed item waits for, and its delay after that")
    WAITED_FOR = (
        "waited_for",
        "queue, 0 or 1 (1 byte), id or batch number (16 bytes), id; or queue, 2, number of a note "
        "(8 bytes)",
        "empty: the last id waits for that item, or batch; or how items, or a batch, have ended",
    )
    CAP_KEYS = (
        "cap_keys",
        "queue, digest of the cap key",
        "how many items with that key count as leased, and how many are parked (4 bytes each); "
        "with a rate for how many a token is set aside (4), when its bucket is full, and its time "
        "in cap_due (8 each)",
    )
    PARKED = (
        "parked",
        "queue, digest of the cap key, level (1 byte), visible-at, id",
        "empty; the item is in that level of visibility_index, parked",
    )
    CAP_DUE = (
        "cap_due",
        "queue, due-at, digest of the cap key",
        "empty; tokens of the key are back then, for parked items, or all of them",
    )
    POSITIONS = (
        "positions",
        "group, partition (2 bytes)",
        "the offset of the next message that no consumer has had",
    )
    LAST_OF_KEY = (
        "last_of_key",
        "log, digest of a message's key",
        "the offset of the last message with that key",
    )
    REPLACED = (
        "replaced",
        "log, offset",
        "empty; a later message has the same key, and this one is to be deleted",
    )
    AGENDA = (
        "agenda",
        "0, number of a topic or group; or 1, time, number of a topic or group",
        "when to look at it; or its topic",
    )

    # Every put looks up its family: the hash of an enum is Python code, this one is C.
    __hash__ = object.__hash__

    def __init__(self, family_name: str, key: str, value: str, profile: Profile = _SMALL) -> None:
        self.family_name = family_name
        self.key_parts = key
        self.value_kind = value
        self.profile = profile


_NOT_OF_QUEUES = frozenset(
    {
        Family.DEFAULT,
        Family.TOPICS,
        Family.TOPIC_NAMES,
        Family.GROUPS,
        Family.SCHEMAS,
        Family.POSITIONS,
        Family.LAST_OF_KEY,
        Family.REPLACED,
        Family.AGENDA,
    }
)

QUEUE_FAMILIES = tuple(family for family in Family if family not in _NOT_OF_QUEUES)
"""The families whose keys begin with a queue's number."""

GROUP_FAMILIES = (*QUEUE_FAMILIES, Family.POSITIONS)
"""The families that have entries of a group that shares messages."""

TOPIC_FAMILIES = (
    Family.TOPICS, Family.GROUPS, Family.SCHEMAS, Family.COUNTERS, Family.PRODUCERS, Family.KEYS,
    Family.FORGET,
)  # fmt: skip
"""The families whose keys begin with a topic's number."""

LOG_FAMILIES = (Family.LOGS, Family.LOG_BLOCKS, Family.LAST_OF_KEY, Family.REPLACED)
"""The families that have entries of a partition's log."""
