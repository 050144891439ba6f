"""The final state of topics, from a full read at the end."""

from dataclasses import dataclass, field

Message = tuple[int, str, str, str, int, int]
"""Offset, contents, key, id, sequence and time."""


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


@dataclass
class FinalTopics:
    topics: dict[str, FinalTopic] = field(default_factory=dict)
    cursors: dict[tuple[str, str, int], int] = field(default_factory=dict)
    """By topic, group and partition."""
