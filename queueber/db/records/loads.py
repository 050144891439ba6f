"""Codecs for loads and their parts: keys and values of the family `loads`."""

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from queueber.db.records.keys import DIGEST_BYTES, text_digest
from queueber.db.records.queues import stored_names
from queueber.db.records.remembered import KEY_ENTRY_BYTES
from queueber.ids import PARTITION_BYTES
from queueber.limits import ID_BYTES
from queueber.model import LoadRef, Part, PartRef, StagedFile
from queueber.schema import storage

# --- keys, without the queue ----------------------------------------------------------------------

_UNDER_WAY, _COMMITTED = b"\0", b"\1"
LOADS_END = _COMMITTED
"""The key after every load that is under way."""
LOAD_KEY_BYTES = 1 + DIGEST_BYTES
PART_KEY_BYTES = LOAD_KEY_BYTES + PARTITION_BYTES + DIGEST_BYTES

# Kinds of digests: the same text may also name a key or a producer.
_LOAD_KIND, _LOADED_KIND = b"load", b"loaded"


def load_digest(name: str) -> bytes:
    return text_digest(name, _LOAD_KIND)


def load_key(digest: bytes) -> bytes:
    return _UNDER_WAY + digest


def part_key(digest: bytes, ref: PartRef) -> bytes:
    return load_key(digest) + ref.partition.to_bytes(PARTITION_BYTES) + text_digest(ref.attempt)


def parts_end(digest: bytes) -> bytes:
    """The key after the load and all its parts."""
    return load_key(digest) + b"\xff" * (PARTITION_BYTES + DIGEST_BYTES + 1)


def is_load_key(key: bytes) -> bool:
    return len(key) == LOAD_KEY_BYTES and key.startswith(_UNDER_WAY)


def loaded_digest(name: str) -> bytes:
    return text_digest(name, _LOADED_KIND)


def loaded_key(digest: bytes) -> bytes:
    return _COMMITTED + digest


def part_directory(ref: PartRef) -> str:
    """The name of the part's directory, inside the one of its load."""
    return f"{ref.partition}-{text_digest(ref.attempt).hex()}"


# --- loads ----------------------------------------------------------------------------------------


class Dropped(NamedTuple):
    """A row that is a duplicate: another item has its key."""

    item_id: bytes
    digest: bytes
    entry: bytes
    """The value that its key gets in `keys`."""


@dataclass(frozen=True, slots=True)
class LoadRecord:
    """A load that is under way."""

    ref: LoadRef
    batch: int
    """The number of its batch; 0: none."""
    started_at_ms: int
    seen_at_ms: int
    """The time of the last call."""
    timeout_ms: int
    forget_at_ms: int
    """When its entry in `forget` is due."""
    id_head: bytes
    dedup_window_ms: int
    token: bytes
    rows: int = 0
    """How many are staged so far."""
    is_committing: bool = False
    parts: list[bytes] = field(default_factory=list)
    """Once it is committing: the keys of its parts."""
    dropped: list[Dropped] = field(default_factory=list)
    """Once it is committing."""

    @property
    def directory(self) -> str:
        """The name of the directory of its files."""
        return self.id_head.hex()

    def at(self, **changes: Any) -> "LoadRecord":
        return replace(self, **changes)


_LOAD = stored_names(LoadRecord, "ref", "parts", "dropped")
_DROPPED = struct.Struct(f"{ID_BYTES}s{DIGEST_BYTES}s{KEY_ENTRY_BYTES}s")


def encode_load(record: LoadRecord) -> bytes:
    return _encode(
        storage.LoadRecord,
        name=record.ref.name,
        epoch=record.ref.epoch,
        **_values(record, _LOAD),
        parts=record.parts,
        dropped=b"".join([_DROPPED.pack(*each) for each in record.dropped]),
    )


def decode_load(value: bytes) -> LoadRecord:
    with _opened(storage.LoadRecord, value) as r:
        return LoadRecord(
            ref=LoadRef(r.name, r.epoch),
            parts=list(r.parts),
            dropped=[Dropped(*each) for each in _DROPPED.iter_unpack(r.dropped)],
            **_read(r, _LOAD),
        )


@dataclass(frozen=True, slots=True)
class LoadedRecord:
    """The last committed load of a name."""

    ref: LoadRef
    batch: int
    started_at_ms: int
    committed_at_ms: int
    forget_at_ms: int
    rows: int
    duplicates: int


_LOADED = stored_names(LoadedRecord, "ref")


def encode_loaded(record: LoadedRecord) -> bytes:
    ref = record.ref
    values = _values(record, _LOADED)
    return _encode(storage.LoadedRecord, name=ref.name, epoch=ref.epoch, **values)


def decode_loaded(value: bytes) -> LoadedRecord:
    with _opened(storage.LoadedRecord, value) as r:
        return LoadedRecord(ref=LoadRef(r.name, r.epoch), **_read(r, _LOADED))


# --- parts ----------------------------------------------------------------------------------------

_PART = stored_names(Part, "ref", "files", "levels")
_FILE = stored_names(StagedFile) | {"size": "bytes"}


def encode_part(part: Part) -> bytes:
    return _encode(
        storage.LoadPart,
        partition=part.ref.partition,
        attempt=part.ref.attempt,
        files=[_values(file, _FILE) for file in part.files],
        **_values(part, _PART),
        levels=list(part.levels),
    )


def decode_part(value: bytes) -> Part:
    with _opened(storage.LoadPart, value) as p:
        return Part(
            ref=PartRef(p.partition, p.attempt),
            files=[StagedFile(**_read(file, _FILE)) for file in p.files],
            levels=list(p.levels),
            **_read(p, _PART),
        )


# --- messages -------------------------------------------------------------------------------------


def _values(record: object, names: Mapping[str, str]) -> dict[str, Any]:
    return {stored_name: getattr(record, name) for name, stored_name in names.items()}


def _read(message: Any, names: Mapping[str, str]) -> dict[str, Any]:
    return {name: getattr(message, stored_name) for name, stored_name in names.items()}


def _encode(kind: Any, **values: Any) -> bytes:
    """The order of the values decides where each is in the message."""
    encoded: bytes = kind.new_message(**values).to_bytes()
    return encoded


def _opened(kind: Any, value: bytes) -> Any:
    return kind.from_bytes(value, traversal_limit_in_words=len(value) + 8)
