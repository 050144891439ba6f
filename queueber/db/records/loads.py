"""Codecs for loads and their parts: keys and values of the family `loads`."""

from dataclasses import dataclass, field, replace
from typing import Any

from queueber.db.records.dedup_keys import KEY_ENTRY_BYTES
from queueber.db.records.keys import DIGEST_BYTES, text_digest
from queueber.ids import PARTITION_BYTES
from queueber.limits import ID_BYTES
from queueber.model import LoadRef, Part, PartRef, StagedFile
from queueber.schema import storage

# --- keys, without the queue ----------------------------------------------------------------------

_UNDER_WAY, _COMMITTED = b"\0", b"\1"
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


def loads_end() -> bytes:
    """The key after every load that is under way."""
    return _COMMITTED


def loaded_digest(name: str) -> bytes:
    return text_digest(name, _LOADED_KIND)


def loaded_key(digest: bytes) -> bytes:
    return _COMMITTED + digest


def part_directory(ref: PartRef) -> str:
    """The name of the part's directory, inside the one of its load."""
    return f"{ref.partition}-{text_digest(ref.attempt).hex()}"


# --- loads ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Dropped:
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
        """The record with some fields changed."""
        return replace(self, **changes)


_DROPPED_BYTES = ID_BYTES + DIGEST_BYTES + KEY_ENTRY_BYTES


def encode_load(record: LoadRecord) -> bytes:
    message = storage.LoadRecord.new_message(
        name=record.ref.name,
        epoch=record.ref.epoch,
        isCommitting=record.is_committing,
        batch=record.batch,
        startedAtMs=record.started_at_ms,
        seenAtMs=record.seen_at_ms,
        timeoutMs=record.timeout_ms,
        forgetAtMs=record.forget_at_ms,
        idHead=record.id_head,
        dedupWindowMs=record.dedup_window_ms,
        token=record.token,
        rows=record.rows,
        parts=record.parts,
        dropped=b"".join([each.item_id + each.digest + each.entry for each in record.dropped]),
    )
    encoded: bytes = message.to_bytes()
    return encoded


def decode_load(value: bytes) -> LoadRecord:
    with storage.LoadRecord.from_bytes(value, traversal_limit_in_words=len(value) + 8) as r:
        return LoadRecord(
            ref=LoadRef(r.name, r.epoch),
            batch=r.batch,
            started_at_ms=r.startedAtMs,
            seen_at_ms=r.seenAtMs,
            timeout_ms=r.timeoutMs,
            forget_at_ms=r.forgetAtMs,
            id_head=bytes(r.idHead),
            dedup_window_ms=r.dedupWindowMs,
            token=bytes(r.token),
            rows=r.rows,
            is_committing=r.isCommitting,
            parts=[bytes(part) for part in r.parts],
            dropped=_read_dropped(bytes(r.dropped)),
        )


def _read_dropped(joined: bytes) -> list[Dropped]:
    digest_at, entry_at = ID_BYTES, ID_BYTES + DIGEST_BYTES
    rows = [joined[at : at + _DROPPED_BYTES] for at in range(0, len(joined), _DROPPED_BYTES)]
    return [Dropped(row[:digest_at], row[digest_at:entry_at], row[entry_at:]) for row in rows]


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


def encode_loaded(record: LoadedRecord) -> bytes:
    message = storage.LoadedRecord.new_message(
        name=record.ref.name,
        epoch=record.ref.epoch,
        batch=record.batch,
        startedAtMs=record.started_at_ms,
        committedAtMs=record.committed_at_ms,
        forgetAtMs=record.forget_at_ms,
        rows=record.rows,
        duplicates=record.duplicates,
    )
    encoded: bytes = message.to_bytes()
    return encoded


def decode_loaded(value: bytes) -> LoadedRecord:
    with storage.LoadedRecord.from_bytes(value) as r:
        return LoadedRecord(
            ref=LoadRef(r.name, r.epoch),
            batch=r.batch,
            started_at_ms=r.startedAtMs,
            committed_at_ms=r.committedAtMs,
            forget_at_ms=r.forgetAtMs,
            rows=r.rows,
            duplicates=r.duplicates,
        )


# --- parts ----------------------------------------------------------------------------------------


def encode_part(part: Part) -> bytes:
    files: list[dict[str, Any]] = [
        {
            "name": file.name,
            "family": file.family,
            "bytes": file.size,
            "entries": file.entries,
            "crc32": file.crc32,
            "firstKey": file.first_key,
            "lastKey": file.last_key,
        }
        for file in part.files
    ]
    message = storage.LoadPart.new_message(
        partition=part.ref.partition,
        attempt=part.ref.attempt,
        files=files,
        rows=part.rows,
        contentsBytes=part.contents_bytes,
        digest=part.digest,
        levels=list(part.levels),
        delayed=part.delayed,
        delayedFirstMs=part.delayed_first_ms,
        keys=part.keys,
    )
    encoded: bytes = message.to_bytes()
    return encoded


def decode_part(value: bytes) -> Part:
    with storage.LoadPart.from_bytes(value, traversal_limit_in_words=len(value) + 8) as p:
        return Part(
            ref=PartRef(p.partition, p.attempt),
            files=[
                StagedFile(
                    file.name,
                    file.family,
                    file.bytes,
                    file.entries,
                    file.crc32,
                    bytes(file.firstKey),
                    bytes(file.lastKey),
                )
                for file in p.files
            ],
            rows=p.rows,
            contents_bytes=p.contentsBytes,
            digest=bytes(p.digest),
            levels=list(p.levels),
            delayed=p.delayed,
            delayed_first_ms=p.delayedFirstMs,
            keys=p.keys,
        )
