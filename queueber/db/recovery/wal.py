"""RocksDB's write-ahead log as bytes: where it breaks off, and whether it was synced beyond that.

A log is blocks of 32 KiB. A record is one fragment (FULL), or several (FIRST, MIDDLE, LAST) when it
does not fit into its block; a fragment is a checksum (4), a length (2), a kind (1), and bytes. The
record is a write batch: the sequence number of its first entry (8), how many there are (4), the
entries; all little-endian. Less than a header at the end of a block is left out.

A log may break off because of a power loss, or because of damage. Unsynced pages reach the disk in
any order, so in both cases sound records may follow a bad one. A note (`synced_note`) tells the two
apart: the first batch after each sync says how far that sync went. If a sound record after the
break says that more was synced than can be replayed, then synced data is missing.

The notes cannot tell that the end of the log is missing. So the file `SYNCED` in a data directory
has the sequence number up to which everything was synced. The server writes it once a second and
when it stops, so the number is a little old. A store that is opened with less has lost acknowledged
data: the end of its log, or a whole file. The file is local to one store: a copy of the entries
goes without it.
"""

import os
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from queueber.errors import StorageCorrupt

BLOCK_BYTES = 32 * 1024
_HEADER = struct.Struct("<IHB")
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
_BATCH_HEAD = struct.Struct("<QI")

SYNCED_KEY = b"synced"
"""In the family `default`, and local to this store. Its value is only ever read in the log."""
_SYNCED_ENTRY = b"\x01" + bytes([len(SYNCED_KEY)]) + SYNCED_KEY + b"\x08"
"""The first bytes of a batch with the note: a put into the first family, two lengths, the key."""

_SECTOR = bytes(505)
"""A sector that was never written has at least so many zeros after a header."""
_SEQUENCES_AHEAD_MAX = 1 << 40
"""A record further ahead than this is none: the bytes only look like one."""


class Break(NamedTuple):
    """Where the replay ends, if the log goes on after it."""

    file: str
    position: int
    synced: int
    """The highest sequence number that later records note as synced; 0: none does."""


class _Record(NamedTuple):
    first: int
    last: int
    synced: int
    end: int
    """Where the next record begins."""


def synced_note(sequence: int) -> bytes:
    """The value under `SYNCED_KEY`: everything up to this sequence number is on disk."""
    return sequence.to_bytes(8)


def find_break(logs: Iterable[tuple[str, bytes]], replayed: int) -> Break | None:
    """Where the replay of the logs (oldest first), which ended with the sequence number `replayed`,
    stopped; None if they hold no more.

    Records up to there are known to be sound. After them every checksum is computed, in Python
    (5 MB/s), up to the first record that notes more as synced.
    """
    found: Break | None = None
    for name, data in logs:
        at = 0
        while (at := _skip_trailer(at)) < len(data):
            record = _read_record(data, at, trusted=replayed)
            if record is None and not any(data[at : at + 4096]) and not any(data[at:]):
                break  # space that was allocated, but never written
            if record is None or record.last > replayed:
                found = found or Break(name, at, 0)
            if record is None:
                at = _next_sound(data, at + 1, after=replayed)
                continue
            if found and record.first > replayed and record.synced > replayed:
                return found._replace(synced=record.synced)
            at = record.end
    return found


def find_hole(data: bytes) -> int | None:
    """Where zeros are in place of a record, with other bytes after them; None if nowhere.

    RocksDB takes such zeros for space that was never written, skips the rest of the block and
    replays what follows.
    """
    if data.find(_SECTOR) < 0:
        return None
    at = 0
    while (at := _skip_trailer(at)) + _HEADER.size <= len(data):
        record = _read_record(data, at, trusted=_SEQUENCES_AHEAD_MAX << 20)
        if record is None:
            is_zero = not any(data[at : at + _HEADER.size])
            return at if is_zero and any(data[at:]) else None
        at = record.end
    return None


BROKEN_HEADER = _HEADER.pack(0xFFFFFFFF, 0, _FULL)
"""Written over the first bytes of a hole, it makes RocksDB end its replay there."""


def _skip_trailer(at: int) -> int:
    left = BLOCK_BYTES - at % BLOCK_BYTES
    return at + left if left < _HEADER.size else at


def _read_record(data: bytes, at: int, *, trusted: int) -> _Record | None:
    """The record at a position; None if it is cut off or damaged. Its checksums are verified if it
    goes beyond the sequence number `trusted`."""
    fragments: list[tuple[int, int]] = []
    payload = b""
    while True:
        at = _skip_trailer(at)
        end = _fragment_end(data, at)
        if end is None:
            return None
        kind = data[at + 6]
        if (kind in (_FULL, _FIRST)) != (not fragments):
            return None
        fragments.append((at, end))
        if len(payload) < _BATCH_HEAD.size + len(_SYNCED_ENTRY) + 8:
            payload += data[at + _HEADER.size : min(end, at + 64)]
        at = end
        if kind in (_FULL, _LAST):
            break
    if len(payload) < _BATCH_HEAD.size:
        return None
    first, count = _BATCH_HEAD.unpack_from(payload)
    last = first + count - 1
    if last > trusted and not all(_is_sound(data, start, end) for start, end in fragments):
        return None
    entries = payload[_BATCH_HEAD.size :]
    synced = 0
    if entries.startswith(_SYNCED_ENTRY):
        synced = int.from_bytes(entries[len(_SYNCED_ENTRY) : len(_SYNCED_ENTRY) + 8])
    return _Record(first, last, synced, at)


def _fragment_end(data: bytes, at: int) -> int | None:
    if at + _HEADER.size > len(data):
        return None
    _, length, kind = _HEADER.unpack_from(data, at)
    end = at + _HEADER.size + length
    block_end = at - at % BLOCK_BYTES + BLOCK_BYTES
    return end if _FULL <= kind <= _LAST and end <= min(block_end, len(data)) else None


def _is_sound(data: bytes, at: int, end: int) -> bool:
    # The checksum is over kind and bytes, and stored masked: rotated, plus a constant.
    crc = crc32c(data[at + 6 : end])
    masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    return bool(_HEADER.unpack_from(data, at)[0] == masked)


def _next_sound(data: bytes, at: int, *, after: int) -> int:
    """The next position at which a sound record begins; the end if there is none.

    A damaged length does not tell where the next record begins, so every byte is tried. Bytes that
    do not look like the start of a batch are skipped before their checksum is computed.
    """
    for position in range(at, len(data) - _HEADER.size):
        if data[position + 6] not in (_FULL, _FIRST):
            continue
        end = _fragment_end(data, position)
        if end is None:
            continue
        head = data[position + _HEADER.size : min(end, position + _HEADER.size + 8)]
        sequence = int.from_bytes(head, "little")
        if len(head) == 8 and not after < sequence < after + _SEQUENCES_AHEAD_MAX:
            continue
        if _is_sound(data, position, end):
            return position
    return len(data)


def _crc_table() -> list[int]:
    table = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_CRC_TABLE = _crc_table()


def crc32c(data: bytes) -> int:
    """CRC-32C, as RocksDB uses it, byte by byte: fast enough for the end of a log."""
    crc, table = 0xFFFFFFFF, _CRC_TABLE
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


# --- the file SYNCED ------------------------------------------------------------------------------

SYNCED_FILE = "SYNCED"


def read_synced(folder: Path) -> int:
    """The sequence number; 0 if there is no file."""
    file = folder / SYNCED_FILE
    try:
        text = file.read_bytes()
    except FileNotFoundError:
        return 0
    number, _, checksum = text.strip().partition(b" ")
    if not number.isdigit() or checksum != b"%08x" % crc32(number):
        raise StorageCorrupt(
            f"{file} is damaged, and other files may be, too: look at the disk; without this file "
            "the store can be opened, and 'queueber verify' checks all but the end of the log"
        )
    return int(number)


def write_synced(folder: Path, sequence: int) -> None:
    """Replace the file; a crash leaves the old one or the new one."""
    number = b"%d" % sequence
    made = folder / f"{SYNCED_FILE}.new"
    with made.open("wb") as file:
        file.write(b"%s %08x\n" % (number, crc32(number)))
        file.flush()
        os.fsync(file.fileno())
    made.replace(folder / SYNCED_FILE)
    # The folder is not synced: after a power loss the old file, with a lower number, may be back.
