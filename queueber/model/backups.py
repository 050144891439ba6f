"""Values of backups: the whole store at one moment, as files."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BackupFile:
    name: str
    size: int
    is_final: bool
    """A file of this name and size never changes, in no later backup of the server either."""
    fingerprint: bytes
    """Of a final file: files with the same one are the same, whatever server they come from."""


@dataclass(frozen=True, slots=True)
class BackupInfo:
    """A backup that the server keeps for whoever reads it."""

    id: bytes
    taken_at_ms: int
    expires_at_ms: int
    """When the server ends it, if nobody reads it before."""
    format: int
    """The format of the store."""
    files: Sequence[BackupFile]
    queues: int
    """How many queues, items and topics there were when it began."""
    items: int
    topics: int
