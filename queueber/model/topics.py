"""Values of topics: settings, messages as they are published and read, groups."""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from typing import NamedTuple

from queueber.limits import MINUTE_MS, TOMBSTONE_MS
from queueber.model.items import Producer
from queueber.model.queues import QueueSettings
from queueber.model.routes import Source

RAW_TYPE = "application/octet-stream"
"""The content type of a topic that has none."""


def bare_type(content_type: str) -> str:
    """A content type without its parameters, in small letters: what types are compared by."""
    return content_type.partition(";")[0].strip().lower()


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """The settings of one topic. A limit of 0 means that there is none."""

    retention_ms: int = 0
    """How long messages are kept."""
    retention_bytes: int = 0
    """How many bytes of messages each partition keeps."""
    retention_messages: int = 0
    """How many messages each partition keeps."""
    deletes_acknowledged: bool = False
    """Whether messages are deleted once all groups have acknowledged them."""
    refuses_when_full: bool = False
    """Whether a publish is refused at a limit of bytes or messages, instead of deleting the oldest
    messages."""
    keeps_last_per_key: bool = False
    """Whether a message replaces the one before it with the same key. One without a payload, a
    tombstone, deletes its key."""
    tombstone_ms: int = TOMBSTONE_MS
    """How long a tombstone is kept, so that readers see it."""
    ttl_ms: int = 0
    """The topic is deleted once nobody has used it for so long."""
    expires_at_ms: int = 0
    """The topic is deleted at this time, used or not."""
    dedup_window_ms: int = 2 * MINUTE_MS
    """For how long a second message with the same dedup id is recognised."""
    schema_version: int = 0
    """The schema that publications must say their messages were checked against; 0: none."""


class GroupKind(Enum):
    """How the consumers of a group get its messages."""

    ORDERED = "ordered"
    """One consumer at a time gets the messages of a partition in order, and acknowledges all up to
    an offset."""
    SHARED = "shared"
    """Many consumers lease messages, and acknowledge each."""
    QUEUE = "queue"
    """The server adds the messages to a queue, each once."""


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """How a group works. The last two are for groups that share messages."""

    kind: GroupKind = GroupKind.ORDERED
    queue: str = ""
    """Of a bridge: the queue that gets the messages."""
    leases: QueueSettings = field(default_factory=QueueSettings)
    """Leases, attempts, backoff and isolation."""
    in_flight_max: int = 0
    """How many messages may be leased at once; 0: no limit."""


@dataclass(slots=True)
class NewMessages:
    """Messages to publish. An empty column means the default for every message."""

    payloads: Sequence[bytes]
    keys: Sequence[str] = ()
    attributes: Sequence[Mapping[str, str]] = ()
    dedup_ids: Sequence[str] = ()


@dataclass(slots=True)
class Publication:
    """What one call publishes to one topic."""

    topic: str
    messages: NewMessages
    partition: int | None = None
    """None: that of the hash of each key; messages without a key go to one partition together."""
    producer: Producer | None = None
    expected_offset: int | None = None
    """The offset that the first message must get."""
    closes: bool = False
    """Whether the topic takes no message after these."""
    may_create: bool = True
    """Whether the topic is created if there is none: its caller wants and may do that."""
    content_type: str = ""
    """If given, it must be that of the topic; parameters and letter case do not count."""
    text_sequence: str = ""
    """If given, it must be greater, byte by byte, than that of the last publication with one."""
    number_decides: bool = False
    """Whether a known number of the producer is a repeat, whatever the payloads are."""
    schema_version: int = 0
    """The schema that the messages were checked against."""
    topic_number: int = 0
    """If given, the topic must have this number: it was not deleted and created again."""
    one_partition: bool = False
    """Whether the topic must have one partition: it is used as a stream."""


@dataclass(slots=True)
class Published:
    """Where the messages of a publication are, in the order in which they were given."""

    at_ms: int
    partitions: Sequence[int]
    offsets: Sequence[int]
    ids: Sequence[bytes]
    sequences: Sequence[int]
    duplicates: Sequence[bool] = ()
    """Which were published before, with the same dedup id; empty: none."""
    is_repeat: bool = False
    """Whether the whole call was published before, by the same producer."""
    end_offset: int = 0
    """Of a topic of one partition: where it goes on after these messages; of a repeat, or without
    messages, where it goes on now."""
    last_number: int = 0
    """The highest number of a call of this producer and epoch."""
    is_closed: bool = False
    """Whether the topic takes no more messages."""
    origin: int = 0
    """Of a topic of one partition: what its offsets are about; see `TopicInfo`."""


class Start(Enum):
    """Where a read begins."""

    OFFSET = "offset"
    TIME = "time"
    EARLIEST = "earliest"
    LATEST = "latest"
    LAST = "last"
    """The last n messages."""
    GROUP = "group"
    """Where the group goes on."""


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a partition. `value` is the offset, the time in ms, or the number of messages."""

    start: Start = Start.EARLIEST
    value: int = 0
    moves: bool = False
    """Whether an offset that is not in the log is moved to its nearest end instead of refused."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Where a read ends; 0: no limit of that kind."""

    messages: int = 0
    bytes: int = 0
    end_offset: int = 0
    end_ms: int = 0
    """Only messages that were published before this time."""


class PackedMessages(NamedTuple):
    """Messages with consecutive offsets that were published together, as they are stored and
    travel. Time, id and sequence are those of the first; ids and sequences of the others follow."""

    offset: int
    count: int  # type: ignore[assignment]  # nobody counts the fields of the tuple
    at_ms: int
    id: bytes
    sequence: int
    ends: bytes
    """Where each payload ends, 4 bytes each, little-endian."""
    payloads: bytes
    keys: Sequence[bytes] = ()
    """One for each message, or none at all."""
    attributes: Sequence[bytes] = ()
    """Packed, as in a block; one for each message, or none at all."""

    def split(self) -> list[bytes]:
        """The payload of each message."""
        payloads, ends = self.payloads, struct.unpack(f"<{self.count}I", self.ends)
        return [payloads[a:b] for a, b in pairwise((0, *ends))]


@dataclass(slots=True)
class MessageSlice:
    """What a read found."""

    partition: int
    packed: Sequence[PackedMessages]
    next_offset: int
    """Where the next read goes on."""
    first_kept: int
    end_offset: int
    """The offset that the next message of the partition will get."""
    missed: int = 0
    """Messages from the wanted offset on that were deleted before they were read."""
    is_closed: bool = False
    """Whether no further message will come after `end_offset`."""
    content_type: str = ""
    """These three are told if the read asks for them; see `TopicInfo`."""
    origin: int = 0
    number: int = 0

    @property
    def count(self) -> int:
        return sum([each.count for each in self.packed])


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """What a topic is created with."""

    settings: TopicSettings = field(default_factory=TopicSettings)
    partitions: int = 1
    content_type: str = ""
    alias: str = ""


class ForkAt(NamedTuple):
    """Where a fork begins: a partition and an offset in it, or where each partition ends."""

    partition: int | None = None
    offset: int = 0
    cut_bytes: int = 0
    """The fork's own first message has so many bytes of the message at the offset; 0: none."""


@dataclass(frozen=True, slots=True)
class TopicSchema:
    """A version of the schema of a topic. The server keeps the document, and does not read it."""

    version: int
    from_offset: int
    """The offset of the first message that had to fit it."""
    at_ms: int
    """When it was set."""
    document: bytes = b""
    """Empty in a list."""
    topic_number: int = 0
    """Of the topic whose schema it is."""


@dataclass(frozen=True, slots=True)
class PartitionInfo:
    """How far a partition reaches."""

    first_offset: int
    next_offset: int
    bytes: int
    oldest_ms: int
    """When the oldest message was published; 0: there is none."""
    last_ms: int
    inherited_bytes: int = 0
    """Of the messages that a fork shares; `bytes` are its own. A publish that it shares in part
    counts whole."""


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """A topic at one moment."""

    name: str
    config: TopicConfig
    created_at_ms: int
    partitions: Sequence[PartitionInfo]
    is_closed: bool
    is_deleted: bool
    """Whether only its forks keep it."""
    forks: int
    parent: str
    """The name of the topic that it is a fork of."""
    groups: Sequence[str]
    expires_at_ms: int
    """When it is deleted unless it is used; 0: never."""
    origin: int = 0
    """The same for a topic and its forks; another one for a topic that was created again."""
    number: int = 0
    """Of the topic; no other topic has had it, or will."""
    fork_offset: int = 0
    """Of a fork of one partition: the offset at which it began."""
    cut_bytes: int = 0
    """Of a fork: its own first message has so many bytes of the one at that offset; 0: none."""
    text_sequence: str = ""
    """That of the last publication that had one."""
    sources: Sequence[Source] = ()
    """The queues whose changes it gets."""
    updated_at_ms: int = 0
    """When its settings, alias, partitions or sources were changed, or it was closed; else when it
    was created."""


@dataclass(frozen=True, slots=True)
class GroupInfo:
    """A group at one moment."""

    name: str
    settings: GroupSettings
    created_at_ms: int
    paused_until_ms: int
    cursors: Sequence[int]
    """For each partition the offset of the oldest message that is not acknowledged."""
    lag: int
    """Messages that are not acknowledged."""
    lag_ms: int
    """The age of the oldest of them; 0: there is none."""
    leased: int
    dead: int
    consumers: Sequence[str] = ()
    stopped_by: str = ""
    """Of a bridge: why it adds no messages, or not those of a partition; "": it does."""
    is_untouched: bool = False
    """Of an ordered group: whether it has acknowledged nothing."""
