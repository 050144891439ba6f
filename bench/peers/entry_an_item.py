"""What format 4 wrote for plain items: entries for every item, not for every run. Frozen.

Before format 5, an item was an entry of its own in `items` and in the index of ready items, and 30
bytes of its lease. The limit that such a store could reach stays the yardstick of the comparison.
These batches are made here, byte for byte as the engine made them then, because no engine does it
any more; a test has the digest of what that engine wrote.
"""

import struct
from collections.abc import Sequence
from itertools import chain
from random import Random

from queueber.db.families import Family
from queueber.db.records.keys import due_part, level_part
from queueber.db.records.leases import (
    WORD,
    encode_lease,
    list_pointer,
    padding,
    root_pointer,
    words,
)
from queueber.db.records.queues import Counters, encode_counters
from queueber.ids import IdSource, ItemId, LeaseId
from queueber.limits import MINUTE_MS, PRIORITY_DEFAULT, PRIORITY_MAX

Entry = tuple[Family, bytes, bytes | None]
"""A value of None deletes."""
Batch = list[Entry]

_PREFIX = bytes([0, 0, 0, 1])
_LEVEL = PRIORITY_MAX - PRIORITY_DEFAULT
_LEVEL_HEAD = _PREFIX + level_part(_LEVEL)
_LEASE_MS = 10 * MINUTE_MS
_ITEM_HEAD = struct.Struct("<II Q Q")
_COUNTERS_HEAD = struct.Struct("<II Q")
_COUNTERS = 26
"""The numbers of a record of counters."""
_MARK = struct.Struct(">IIHHBB")
_BLOCK_BYTES = 15
"""All ids that differ in the last of their 16 bytes had one entry in `holders`."""


class Format4Queue:
    """A queue of plain items: the batches that each call wrote. Nothing is stored."""

    def __init__(self, random: Random) -> None:
        self._ids = IdSource(random)
        self._counters = Counters()

    def add(self, contents: Sequence[bytes], now_ms: int) -> tuple[list[ItemId], Batch]:
        """The ids of the items, and the batch."""
        ids = self._ids.mint(len(contents), now_ms)
        batch: Batch = [
            (Family.ITEMS, _PREFIX + item_id, _encode_item(each))
            for item_id, each in zip(ids, contents, strict=True)
        ]
        batch += [
            (Family.VISIBILITY_INDEX, _LEVEL_HEAD + due_part(now_ms, item_id), _mark(len(each)))
            for item_id, each in zip(ids, contents, strict=True)
        ]
        counters = self._counters
        ready, low = counters.levels.get(_LEVEL, (0, due_part(now_ms, ids[0])))
        counters.levels[_LEVEL] = ready + len(ids), low
        counters.ready += len(ids)
        counters.added_total += len(ids)
        counters.contents_bytes += sum(map(len, contents))
        counters.last_id = ids[-1]
        return ids, [*batch, self._counters_entry()]

    def poll(
        self, ids: Sequence[ItemId], sizes: Sequence[int], added_at_ms: int, now_ms: int
    ) -> tuple[LeaseId, Batch]:
        """The lease of the first ready items, which are these, and the batch."""
        lease_id = LeaseId(self._ids.mint(1, now_ms)[0])
        expires_at_ms = now_ms + _LEASE_MS
        held = b"".join(chain.from_iterable(zip(ids, map(_mark, sizes), strict=True)))
        dues = [due_part(added_at_ms, item_id) for item_id in ids]
        batch: Batch = [
            (Family.LEASES, _PREFIX + lease_id, encode_lease(expires_at_ms, held)),
            *((Family.HOLDERS, key, b"") for key in _holder_keys(ids, lease_id)),
            (Family.LEASE_EXPIRY, _PREFIX + due_part(expires_at_ms, lease_id), b""),
            *((Family.VISIBILITY_INDEX, _LEVEL_HEAD + due, None) for due in dues),
        ]
        counters = self._counters
        ready = counters.levels.pop(_LEVEL)[0] - len(ids)
        if ready:
            counters.levels[_LEVEL] = ready, dues[-1]
        counters.ready = ready
        counters.leased += len(ids)
        counters.leases += 1
        counters.leases_total += 1
        counters.lease_due_ms = min(counters.lease_due_ms, expires_at_ms)
        counters.polled_total += len(ids)
        counters.last_id = lease_id
        return lease_id, [*batch, self._counters_entry()]

    def remove(
        self, ids: Sequence[ItemId], sizes: Sequence[int], lease_id: LeaseId, polled_at_ms: int
    ) -> Batch:
        """The batch that removes all items of a lease."""
        expiry = due_part(polled_at_ms + _LEASE_MS, lease_id)
        batch: Batch = [
            (Family.LEASES, _PREFIX + lease_id, None),
            (Family.LEASE_EXPIRY, _PREFIX + expiry, None),
            *((Family.HOLDERS, key, None) for key in _holder_keys(ids, lease_id)),
            *((Family.ITEMS, _PREFIX + item_id, None) for item_id in ids),
        ]
        counters = self._counters
        counters.leased -= len(ids)
        counters.leases -= 1
        counters.contents_bytes -= sum(sizes)
        counters.removed_total += len(ids)
        return [*batch, self._counters_entry()]

    def _counters_entry(self) -> Entry:
        return Family.COUNTERS, _PREFIX, _as_format_4(encode_counters(self._counters))


def make_batches(
    contents: Sequence[bytes], calls: int, *, random: Random, start_ms: int
) -> tuple[list[Batch], list[Batch]]:
    """The batches of adds, and those of polls and removes in turn; a call each millisecond."""
    queue = Format4Queue(random)
    sizes = [len(each) for each in contents]
    added = [(at_ms, *queue.add(contents, at_ms)) for at_ms in range(start_ms, start_ms + calls)]
    taken: list[Batch] = []
    for now_ms, (added_at_ms, ids, _) in enumerate(added, start_ms + calls):
        lease_id, polled = queue.poll(ids, sizes, added_at_ms, now_ms)
        taken += [polled, queue.remove(ids, sizes, lease_id, now_ms)]
    return [batch for _, _, batch in added], taken


def _as_format_4(counters: bytes) -> bytes:
    """The record of a queue's counters without the numbers that it got later."""
    segments, message_words, root = _COUNTERS_HEAD.unpack_from(counters)
    numbers = root >> 32 & 0xFFFF
    head = _COUNTERS_HEAD.pack(
        segments, message_words - numbers + _COUNTERS, root_pointer(_COUNTERS, 2)
    )
    first = len(head)
    return head + counters[first : first + _COUNTERS * WORD] + counters[first + numbers * WORD :]


def _encode_item(contents: bytes) -> bytes:
    """A Cap'n Proto message without data words, whose one pointer is to the very next word."""
    size = len(contents)
    head = _ITEM_HEAD.pack(0, 2 + words(size), root_pointer(0, 1), list_pointer(0, size))
    return head + contents + padding(size)


def _mark(size: int) -> bytes:
    """Size, no batch, no attempts, no limit of its group, priority, no flags."""
    return _MARK.pack(size, 0, 0, 0, PRIORITY_DEFAULT, 0)


def _holder_keys(ids: Sequence[bytes], lease_id: bytes) -> list[bytes]:
    blocks = dict.fromkeys(item_id[:_BLOCK_BYTES] for item_id in ids)
    return [_PREFIX + block + lease_id for block in blocks]
