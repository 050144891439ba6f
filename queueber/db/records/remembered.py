"""What a queue remembers beside items: dedup keys, producers, batches, and when to forget each.

Fixed widths, big-endian.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from queueber.db.records.keys import DIGEST_BYTES, TIME_BYTES
from queueber.ids import ItemId
from queueber.limits import FORGOTTEN_TOGETHER_MAX, ID_BYTES

# The kinds of records that the family `forget` has entries for.
FORGET_KEY = b"k"
FORGET_PRODUCER = b"p"
FORGET_BATCH = b"b"
FORGET_LOAD = b"l"
"""A load that is under way: it is dropped if no call comes until then."""
FORGET_LOADED = b"c"
"""The record of a committed load."""
FORGET_TOMBSTONE = b"t"
"""A topic's message without a payload, which deletes its key."""

# --- dedup keys: the id of the item that has the key, and when the key is forgotten ---------------
#
# A byte more says that the window is over: the entry is there to find the item, and kept until then
# at least.

KEY_ENTRY_BYTES = ID_BYTES + TIME_BYTES
_KEPT = b"\1"


def encode_key_entry(item_id: bytes, forget_at_ms: int) -> bytes:
    return item_id + forget_at_ms.to_bytes(TIME_BYTES)


def encode_kept_key_entry(item_id: bytes, look_at_ms: int) -> bytes:
    return encode_key_entry(item_id, look_at_ms) + _KEPT


def decode_key_entry(value: bytes) -> tuple[ItemId, int]:
    return ItemId(value[:ID_BYTES]), int.from_bytes(value[ID_BYTES:KEY_ENTRY_BYTES])


def is_key_entry(value: bytes) -> bool:
    return value[KEY_ENTRY_BYTES:] in (b"", _KEPT) and len(value) >= KEY_ENTRY_BYTES


def known_item(value: bytes, now_ms: int) -> ItemId | None:
    """The item whose duplicate an add with the key is now; None if the window is over."""
    item_id, forget_at_ms = decode_key_entry(value)
    return item_id if forget_at_ms > now_ms and len(value) == KEY_ENTRY_BYTES else None


def split_digests(named: bytes) -> list[bytes]:
    return [named[at : at + DIGEST_BYTES] for at in range(0, len(named), DIGEST_BYTES)]


def groups_to_forget(keyed: Sequence[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes, bytes]]:
    """The entries of `forget` for keys of one time: reference, kind, and the digests it names.

    Keys are given as digest and item, in order of the items. An entry names the keys of several
    items, and its reference is the last of them: so a seek from any of them finds it.
    """
    for at in range(0, len(keyed), FORGOTTEN_TOGETHER_MAX):
        group = keyed[at : at + FORGOTTEN_TOGETHER_MAX]
        yield group[-1][1], FORGET_KEY, b"".join([digest for digest, _ in group])


# --- producers: the last call of each, and the answers to its latest calls ------------------------


class ProducerHead(NamedTuple):
    epoch: int
    sequence: int
    """The number of its last call."""
    seen_at_ms: int
    forget_at_ms: int


_PRODUCER = struct.Struct(">4Q")


def encode_producer(head: ProducerHead) -> bytes:
    return _PRODUCER.pack(*head)


def decode_producer(value: bytes) -> ProducerHead:
    return ProducerHead(*_PRODUCER.unpack(value))


class Answer(NamedTuple):
    """The answer to a producer's call, and a checksum of the items that it added."""

    checksum: int
    ids: list[bytes]
    duplicates: list[bool]
    """Empty if there was none."""


_ANSWER = struct.Struct(">II")


def encode_answer(answer: Answer) -> bytes:
    head = _ANSWER.pack(len(answer.ids), answer.checksum)
    return head + b"".join(answer.ids) + bytes(answer.duplicates)


def decode_answer(value: bytes) -> Answer:
    """Raises `ValueError` if the value is no answer."""
    if len(value) < _ANSWER.size:
        raise ValueError(f"an answer has {len(value)} bytes, not even {_ANSWER.size}")
    count, checksum = _ANSWER.unpack_from(value)
    start, end = _ANSWER.size, _ANSWER.size + count * ID_BYTES
    if len(value) not in (end, end + count):
        raise ValueError(f"an answer of {len(value)} bytes cannot have {count} ids")
    ids = [value[at : at + ID_BYTES] for at in range(start, end, ID_BYTES)]
    return Answer(checksum, ids, [bool(each) for each in value[end:]])


# --- batches: counts of their items, and digests of the items' ids --------------------------------

DIGEST_MODULUS = (1 << 128) - 159
"""A prime: a polynomial has few roots."""
_C1, _C2, _C3 = (
    0x9E3779B97F4A7C15F39CC0605CEDC835,
    0xC2B2AE3D27D4EB4F165667B19E3779F9,
    0xD6E8FEB86659FD93A0761D6478BD642F,
)


def ids_digest(last: bytes, count: int) -> int:
    """The sum over consecutive ids of c1 x + c2 x^2 + c3 x^3, where x is the id as a number.

    The order of ids does not matter, and ids can be subtracted. The powers of consecutive numbers
    have sums in closed form, so the cost does not depend on how many ids there are.
    """
    first, n = int.from_bytes(last) - count + 1, count
    # The sums of 0 to n - 1, of their squares and of their cubes.
    s1 = n * (n - 1) // 2
    s2 = s1 * (2 * n - 1) // 3
    s3 = s1 * s1
    x1 = n * first + s1
    x2 = (n * first + 2 * s1) * first + s2
    x3 = ((n * first + 3 * s1) * first + 3 * s2) * first + s3
    return (_C1 * x1 + _C2 * x2 + _C3 * x3) % DIGEST_MODULUS


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

    @property
    def has_ended(self) -> bool:
        """Whether it has no live items, and no load brings some."""
        return self.live == 0 and not self.loads


_BATCH = struct.Struct(f">3Q {DIGEST_BYTES}s {DIGEST_BYTES}s {DIGEST_BYTES}s 3Q")
_ALL_DONE = struct.Struct(f">Q {DIGEST_BYTES}s 2Q")
_IS_ALL_DONE = 1 << 63
"""A bit of the first number, which counts the added items and never gets that large."""
BATCH_NUMBER_BYTES = 4


def encode_batch(record: BatchRecord) -> bytes:
    """A batch whose items are all done has a short form: most batches are that for days."""
    if (
        record.done == record.added
        and record.done_digest == record.added_digest
        and not (record.dead or record.dead_digest or record.loads)
    ):
        short = _ALL_DONE.pack(
            record.added | _IS_ALL_DONE,
            record.added_digest.to_bytes(DIGEST_BYTES),
            record.changed_at_ms,
            record.forget_at_ms,
        )
        return short + record.name.encode()
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
    """Raises `struct.error` if the value is too short."""
    if value[:1] >= b"\x80":
        marked, digest, changed, forget = _ALL_DONE.unpack_from(value)
        name, added = value[_ALL_DONE.size :].decode(), marked ^ _IS_ALL_DONE
        sum_of_ids = int.from_bytes(digest)
        return BatchRecord(name, added, added, 0, sum_of_ids, sum_of_ids, 0, changed, forget)
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
