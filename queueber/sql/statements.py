"""The statements, as values. `parser.py` makes them from a text, `printer.py` a text from them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Operation = Literal["insert", "update", "delete"]
Payload = Literal["key", "full", "diff"]
At = int | Literal["earliest", "latest"]
"""An offset, or an end of the log."""
Listed = Literal["topics", "queues", "tables", "sources", "groups"]
Kind = Literal["topic", "queue", "table"]


@dataclass(frozen=True, slots=True)
class CreateTopic:
    topic: str
    partitions: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    """By the names that the client has for them; durations are seconds."""
    may_exist: bool = False


@dataclass(frozen=True, slots=True)
class DropTopic:
    topic: str
    may_lack: bool = False


@dataclass(frozen=True, slots=True)
class ClearTopic:
    topic: str


@dataclass(frozen=True, slots=True)
class SetTopic:
    """Change settings; those that are not named stay."""

    topic: str
    settings: Mapping[str, Any]
    is_retention: bool = False
    """Whether it was written as SET RETENTION, which takes no other settings."""


@dataclass(frozen=True, slots=True)
class ClearRetention:
    topic: str


@dataclass(frozen=True, slots=True)
class AddSource:
    topic: str
    queue: str
    on: Operation
    where: str = ""
    partition_by: str = ""
    payload: Payload = "key"


@dataclass(frozen=True, slots=True)
class DropSource:
    topic: str
    queue: str
    on: Operation | None = None
    """None: every operation of that queue."""


@dataclass(frozen=True, slots=True)
class Consume:
    topic: str
    group: str | None = None
    partition: int = 0
    start: At = "latest"
    limit: int = 100


@dataclass(frozen=True, slots=True)
class Ack:
    topic: str
    group: str
    upto_offset: int
    """The last one that is done."""
    partition: int = 0


@dataclass(frozen=True, slots=True)
class ResetGroup:
    topic: str
    group: str
    to: At
    partition: int | None = None


@dataclass(frozen=True, slots=True)
class DropGroup:
    topic: str
    group: str
    may_lack: bool = False


@dataclass(frozen=True, slots=True)
class CreateNamespace:
    """Scripts of KalamDB begin with it. There are none here, so there is nothing to do."""

    name: str


@dataclass(frozen=True, slots=True)
class Show:
    listed: Listed
    topic: str | None = None
    like: str | None = None
    """A pattern of names, as LIKE has it."""


@dataclass(frozen=True, slots=True)
class Describe:
    name: str
    kind: Kind | None = None
    """None: a table if the name is that of one, else a topic, else a queue."""


@dataclass(frozen=True, slots=True)
class Select:
    """A query, whole: SELECT, WITH or VALUES. DuckDB reads it."""

    text: str


Statement = (
    CreateTopic
    | DropTopic
    | ClearTopic
    | SetTopic
    | ClearRetention
    | AddSource
    | DropSource
    | Consume
    | Ack
    | ResetGroup
    | DropGroup
    | CreateNamespace
    | Show
    | Describe
    | Select
)
