"""Batches: counts of their items, and digests of the items' ids. Fixed widths, big-endian."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

from queueber.db.records.keys import DIGEST_BYTES

DIGEST_MODULUS = 1 << (8 * DIGEST_BYTES)


def ids_digest(ids: Sequence[bytes]) -> int:
    """The sum of the hashes of ids: their order does not matter, and an id can be subtracted."""
    hashes = b"".join([blake2b(i, digest_size=DIGEST_BYTES).digest() for i in ids])
    halves: tuple[int, ...] = struct.unpack(f">{2 * len(ids)}Q", hashes)
    return ((sum(halves[::2]) << 64) + sum(halves[1::2])) % DIGEST_MODULUS


@dataclass(slots=True)
class BatchRecord:
    """Counts of a batch's items, and digests of their ids (see `ids_digest`)."""

    name: str
    added: int = 0
    done: int = 0
    dead: int = 0
    added_digest: int = 0
    done_digest: int = 0
    dead_digest: int = 0
    changed_at_ms: int = 0
    forget_at_ms: int = 0
    """The time of its entry in `forget`; 0: it has none."""
    loads: int = 0
    """Loads under way that add to it: it is not complete until they end."""

    @property
    def live(self) -> int:
        return self.added - self.done - self.dead


_BATCH = struct.Struct(f">3Q {DIGEST_BYTES}s {DIGEST_BYTES}s {DIGEST_BYTES}s 3Q")
BATCH_NUMBER_BYTES = 4


def encode_batch(record: BatchRecord) -> bytes:
    fixed = _BATCH.pack(
        record.added,
        record.done,
        record.dead,
        record.added_digest.to_bytes(DIGEST_BYTES),
        record.done_digest.to_bytes(DIGEST_BYTES),
        record.dead_digest.to_bytes(DIGEST_BYTES),
        record.changed_at_ms,
        record.forget_at_ms,
        record.loads,
    )
    return fixed + record.name.encode()


def decode_batch(value: bytes) -> BatchRecord:
    added, done, dead, added_d, done_d, dead_d, changed, forget, loads = _BATCH.unpack_from(value)
    return BatchRecord(
        value[_BATCH.size :].decode(),
        added,
        done,
        dead,
        int.from_bytes(added_d),
        int.from_bytes(done_d),
        int.from_bytes(dead_d),
        changed,
        forget,
        loads,
    )


def batch_number_part(number: int) -> bytes:
    return number.to_bytes(BATCH_NUMBER_BYTES)
