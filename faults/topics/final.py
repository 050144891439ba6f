"""The final state of topics, from a full read at the end."""

from dataclasses import dataclass, field

Message = tuple[int, str, str, str, int, int]
"""Offset, contents, key, id, sequence and time."""


@dataclass(frozen=True, slots=True)
class FinalSchema:
    version: int
    from_offset: int
    document: str


@dataclass(frozen=True, slots=True)
class FinalPartition:
    first: int
    end: int
    messages: list[Message]


@dataclass(frozen=True, slots=True)
class FinalTopic:
    partitions: list[FinalPartition]
    keeps_last: bool = False
    """Whether it keeps only the last message of each key."""
    retention_ms: int = 0
    is_limited: bool = False
    """Whether it deletes messages by itself."""
    is_closed: bool = False
    now_ms: int = 0
    """The server's time of the read."""
    block_messages: int = 0
    """If it deletes what all groups have acknowledged: of how many messages it deletes all or none.
    0: it keeps them."""
    is_bridged: bool = True
    """Whether it has a group that adds its messages to a queue, if any queue is to get them."""
    content_type: str = ""
    schema_version: int = 0
    """The one in force."""
    schemas: tuple[FinalSchema, ...] = ()


@dataclass
class FinalTopics:
    topics: dict[str, FinalTopic] = field(default_factory=dict)
    cursors: dict[tuple[str, str, int], int] = field(default_factory=dict)
    """By topic, group and partition."""
    untouched: dict[tuple[str, str], bool] = field(default_factory=dict)
    """By topic and group: whether an ordered group says that it has acknowledged nothing."""
