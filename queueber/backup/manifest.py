"""The manifest: what a backup contains. A backup without one was never finished."""

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from queueber.errors import StorageCorrupt
from queueber.limits import SECOND_MS

VERSION = 1
"""Of the manifest, and of the layout of a repository."""

MANIFEST_FILE = "backup.json"
NAME = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ(-\d+)?")
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_STORED = re.compile(r"(files|backups/[0-9TZ-]+)/[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""Nothing else is opened: a manifest must not lead out of its repository."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    name: str
    """In the data directory."""
    bytes: int
    sha256: str
    stored: str
    """Where it is in the repository."""


@dataclass(frozen=True, slots=True)
class Manifest:
    name: str
    taken_at_ms: int
    server: str
    """The address that it was taken from."""
    server_version: str
    format: int
    """The format of the store."""
    queues: int
    """How many queues, items and topics there were when it began."""
    items: int
    topics: int
    sent_bytes: int
    """The rest was in the repository before."""
    files: Sequence[StoredFile]

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)


def name_of(taken_at_ms: int) -> str:
    """The name of a backup; others of the same second have a number behind it."""
    return datetime.fromtimestamp(taken_at_ms / SECOND_MS, UTC).strftime("%Y-%m-%dT%H-%M-%SZ")


def sort_key(name: str) -> tuple[str, int]:
    """Names sort by time."""
    second, _, number = name.partition("Z")
    return second, int(number.removeprefix("-") or 1)


def encode(manifest: Manifest) -> bytes:
    content = {"version": VERSION, **asdict(manifest)}
    return json.dumps({**content, "sha256": _digest(content)}, indent=1).encode() + b"\n"


def decode(data: bytes, where: str) -> Manifest:
    """Raises `StorageCorrupt` if it is damaged, or of a later version."""
    try:
        content = json.loads(data)
        if content["version"] > VERSION:
            raise StorageCorrupt(
                f"{where} was written by a later version of Queueber (layout {content['version']}, "
                f"this one reads {VERSION})"
            )
        return _read(content)
    except (ValueError, KeyError, TypeError) as error:
        raise StorageCorrupt(f"{where} is damaged: {error}; choose another backup") from error


def _read(content: dict[str, Any]) -> Manifest:
    checksum = content.pop("sha256")
    if checksum != _digest(content):
        raise ValueError("its checksum is another one")
    del content["version"]
    files = [StoredFile(**file) for file in content.pop("files")]
    for file in files:
        if not _FILE_NAME.fullmatch(file.name) or not _STORED.fullmatch(file.stored):
            raise ValueError(f"it names the file {file.name!r} at {file.stored!r}")
    return Manifest(files=files, **content)


def _digest(content: dict[str, Any]) -> str:
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
