"""Stores of format 4, as the versions that had it wrote them. Frozen, as that format is.

`random_queue` makes a queue with items in every state, which breaks no rule; `write_store` writes
it. What is not of format 4 alone is encoded by the codecs of today.
"""

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import groupby
from pathlib import Path
from random import Random
from typing import Any

import rocksdict

from queueber.db.records import loads
from queueber.db.records.blocks import pack_attributes
from queueber.db.records.keys import NEVER_MS, due_part, queue_prefix, text_digest
from queueber.db.records.loads import LoadRecord
from queueber.db.records.queues import Counters, encode_counters, encode_queue
from queueber.db.records.remembered import (
    FORGET_BATCH,
    FORGET_KEY,
    FORGET_LOAD,
    BatchRecord,
    encode_batch,
    encode_key_entry,
)
from queueber.db.recovery.wal import write_synced
from queueber.ids import IdSource, ItemId, LeaseId, made_at_ms, range_end, range_id
from queueber.model import LoadRef, QueueSettings

NOW_MS = 1_700_000_000_000

FAMILIES = (
    "default", "queues", "counters", "items", "visibility_index", "delayed", "places", "dead",
    "leases", "lease_expiry", "holders", "attempts", "keys", "producers", "batches", "batch_names",
    "forget", "loads", "logs", "log_blocks",
)  # fmt: skip

Entries = list[tuple[str, bytes, bytes | None]]
"""Family, key and value; None deletes the key."""


@dataclass
class Item:
    """An item, and what its entries said of it."""

    item_id: ItemId
    contents: bytes
    state: str
    """ready, delayed, leased or dead."""
    visible_at_ms: int = 0
    key: str = ""
    attributes: dict[str, str] = field(default_factory=dict)
    batch: int = 0
    attempts: int = 0
    group_max: int = 0
    priority: int = 5
    died: tuple[int, int] = (0, 0)
    """When and why, if it is dead."""

    @property
    def size(self) -> int:
        packed = pack_attributes(self.attributes)
        return len(self.contents) + len(self.key.encode()) + len(packed)

    @property
    def level(self) -> int:
        return 9 - self.priority + (10 if self.group_max else 0)

    @property
    def mark(self) -> bytes:
        flags = 1 if self.key or self.attributes else 0
        fields = (self.size, self.batch, self.attempts, self.group_max, self.priority, flags)
        return struct.pack(">IIHHBB", *fields)


@dataclass
class Queue:
    number: int
    name: str
    items: list[Item] = field(default_factory=list)
    leases: list[tuple[LeaseId, int, list[Item]]] = field(default_factory=list)
    """Each with its expiry, and its items in the order in which it holds them."""
    batches: dict[int, BatchRecord] = field(default_factory=dict)
    """Without digests and counts of items that exist: those are added when it is written."""
    loads: list[LoadRecord] = field(default_factory=list)
    last_id: bytes = bytes(16)

    @property
    def prefix(self) -> bytes:
        return queue_prefix(self.number)

    def in_state(self, *states: str) -> list[Item]:
        return [item for item in self.items if item.state in states]


# --- random queues --------------------------------------------------------------------------------


def random_queue(random: Random, number: int, groups: int = 6) -> Queue:
    """Items in every state, some alone, some with neighbours; never empty."""
    ids = IdSource(random)
    queue = Queue(number, f"queue-{number}")
    for batch in range(random.randrange(4)):
        queue.batches[batch + 1] = BatchRecord(f"batch {batch}", changed_at_ms=NOW_MS)
    for _ in range(groups):
        queue.items += _group(random, queue, ids)
    queue.items.append(Item(ids.mint(1, NOW_MS)[0], b"never empty", "ready", NOW_MS))
    queue.items[-1].visible_at_ms = made_at_ms(queue.items[-1].item_id)
    queue.items.sort(key=lambda item: item.item_id)
    _lease(random, queue, ids)
    _begin_loads(random, queue, ids)
    queue.last_id = max(
        [item.item_id for item in queue.items] + [each for each, *_ in queue.leases]
    )
    queue.last_id = max([queue.last_id, *[range_end(load.id_head) for load in queue.loads]])
    return queue


def _group(random: Random, queue: Queue, ids: IdSource) -> list[Item]:
    """Items that were added together, without some that are gone."""
    now_ms = NOW_MS + random.randrange(3)
    count = random.choice([1, 2, 5, 30, 30, 700])
    if random.random() < 0.2:
        head, row = ids.mint_range(now_ms), random.randrange(1 << 20)
        minted = [range_id(head, random.randrange(2), row + n) for n in range(count)]
        minted = sorted(set(minted))
    else:
        minted = ids.mint(count, now_ms)
    size_max = random.choice([0, 10, 10, 2000, 40_000 if count < 100 else 1])
    has_details, is_mixed = random.random() < 0.4, random.random() < 0.7
    plain = _fate(random, queue)
    items = []
    for at, item_id in enumerate(minted):
        if random.random() < 0.05:
            continue
        fate = _fate(random, queue) if is_mixed and random.random() < 0.2 else plain
        item = Item(item_id, random.randbytes(random.randint(0, size_max)), **fate)
        if item.state in ("ready", "leased") and not item.visible_at_ms:
            item.visible_at_ms = made_at_ms(item_id)
        if has_details and random.random() < 0.5:
            item.key = random.choice(["", f"key {queue.number} {item_id.hex()}"])
            item.attributes = {"row": str(at)} if random.random() < 0.5 else {}
        items.append(item)
    return items


def _fate(random: Random, queue: Queue) -> dict[str, Any]:
    """What items of one group mostly have in common."""
    state = random.choice(["ready", "ready", "delayed", "leased", "dead"])
    later_ms = NOW_MS + 10_000 + random.randrange(3)
    return {
        "state": state,
        "visible_at_ms": later_ms if state == "delayed" or random.random() < 0.3 else 0,
        "batch": random.choice([0, *queue.batches]),
        "attempts": random.choice([0, 0, 1, 3]),
        "group_max": random.choice([0, 0, 0, 4]),
        "priority": random.choice([5, 5, 9, 0]),
        "died": (NOW_MS + random.randrange(2), random.choice([1, 2]))
        if state == "dead"
        else (0, 0),
    }


def _lease(random: Random, queue: Queue, ids: IdSource) -> None:
    """Give the leased items to leases, which hold them in any order."""
    left = queue.in_state("leased")
    if random.random() < 0.5:
        random.shuffle(left)
    while left:
        count = random.choice([1, 3, 100, 1000])
        (lease_id,) = ids.mint(1, NOW_MS)
        expires_at_ms = NOW_MS + 30_000 + random.randrange(3)
        queue.leases.append((LeaseId(lease_id), expires_at_ms, left[:count]))
        left = left[count:]


def _begin_loads(random: Random, queue: Queue, ids: IdSource) -> None:
    for at in range(random.randrange(3)):
        batch = random.choice([0, len(queue.batches) + 1, *queue.batches])
        queue.batches.setdefault(batch, BatchRecord(f"of load {at}"))
        queue.loads.append(load(f"load {at}", ids, batch))
    queue.batches.pop(0, None)


def load(name: str, ids: IdSource, batch: int = 0) -> LoadRecord:
    """A load without any part."""
    return LoadRecord(
        ref=LoadRef(name, 1),
        batch=batch,
        started_at_ms=NOW_MS,
        seen_at_ms=NOW_MS,
        timeout_ms=1000,
        forget_at_ms=NOW_MS + 1000,
        id_head=ids.mint_range(NOW_MS),
        dedup_window_ms=0,
        token=b"token",
    )


# --- writing --------------------------------------------------------------------------------------


def write_store(path: Path, queues: Iterable[Queue]) -> None:
    """Write a store that was stopped."""
    queues = list(queues)
    next_queue = max([queue.number for queue in queues], default=0) + 1
    entries: Entries = [
        ("default", b"format", (4).to_bytes(4)),
        ("default", b"next_queue", next_queue.to_bytes(4)),
        ("default", b"last_id", bytes(16)),
        ("default", b"synced", (1).to_bytes(8)),
    ]
    for queue in queues:
        entries += _entries(queue)
    put_entries(path, entries)


def put_entries(path: Path, entries: Entries) -> None:
    """Write entries into a store, which may be new."""
    options = rocksdict.Options(raw_mode=True)
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    families = {name: rocksdict.Options(raw_mode=True) for name in FAMILIES}
    database = rocksdict.Rdict(str(path), options, families)
    handles = {name: database.get_column_family_handle(name) for name in FAMILIES}
    batch = rocksdict.WriteBatch(raw_mode=True)
    for family, key, value in entries:
        if value is None:
            batch.delete(key, handles[family])
        else:
            batch.put(key, value, handles[family])
    database.write(batch)
    database.flush_wal(True)
    write_synced(path, database.latest_sequence_number())
    handles.clear()
    database.close()


def _entries(queue: Queue) -> Entries:
    prefix = queue.prefix
    counters = Counters(last_id=queue.last_id, last_batch=max(queue.batches, default=0))
    entries: Entries = [("queues", prefix, encode_queue(queue.name, NOW_MS, QueueSettings()))]
    for item in queue.items:
        entries += _item_entries(prefix, item)
        counters.contents_bytes += item.size
        counters.quarantined += bool(item.group_max and item.state != "dead")
        setattr(counters, item.state, getattr(counters, item.state) + 1)
    counters.added_total = len(queue.items)
    for level, listed in groupby(
        sorted(queue.in_state("ready"), key=lambda item: item.level), key=lambda item: item.level
    ):
        dues = [due_part(item.visible_at_ms, item.item_id) for item in listed]
        counters.levels[level] = (len(dues), min(dues))
    counters.delayed_due_ms = min(
        [item.visible_at_ms for item in queue.in_state("delayed")], default=NEVER_MS
    )
    for lease_id, expires_at_ms, held in queue.leases:
        value = b"".join([item.item_id + item.mark for item in held])
        entries.append(("leases", prefix + lease_id, _encode_lease(expires_at_ms, value)))
        entries.append(("lease_expiry", prefix + due_part(expires_at_ms, lease_id), b""))
        for block in {item.item_id[:15] for item in held}:
            entries.append(("holders", prefix + block + lease_id, b""))
        counters.leases += 1
        counters.lease_due_ms = min(counters.lease_due_ms, expires_at_ms)
    records = _record_entries(queue, counters)
    counters.forgets = sum(family == "forget" for family, *_ in records)
    forgotten = [int.from_bytes(key[4:12]) for family, key, _ in records if family == "forget"]
    counters.forget_due_ms = min(forgotten, default=NEVER_MS)
    return [*entries, *records, ("counters", prefix, encode_counters(counters))]


def _item_entries(prefix: bytes, item: Item) -> Entries:
    entries: Entries = [("items", prefix + item.item_id, _encode_item(item))]
    due = due_part(item.visible_at_ms, item.item_id)
    if item.state == "ready":
        entries.append(("visibility_index", prefix + bytes([item.level]) + due, item.mark))
    if item.state == "delayed":
        entries.append(("delayed", prefix + due, item.mark))
    if item.state in ("ready", "delayed") and item.visible_at_ms != made_at_ms(item.item_id):
        entries.append(("places", prefix + item.item_id, due[:8]))
    if item.state == "dead":
        died_at_ms, reason = item.died
        value = died_at_ms.to_bytes(8) + bytes([reason]) + item.mark
        entries.append(("dead", prefix + item.item_id, value))
    if item.attempts:
        value = _encode_attempts([NOW_MS] * item.attempts, "it failed")
        entries.append(("attempts", prefix + item.item_id, value))
    return entries


def _record_entries(queue: Queue, counters: Counters) -> Entries:
    prefix = queue.prefix
    entries: Entries = []
    for item in queue.items:
        if item.key:
            digest, forget_at_ms = text_digest(item.key), NOW_MS + 60_000
            entries.append(("keys", prefix + digest, encode_key_entry(item.item_id, forget_at_ms)))
            entries.append(("forget", prefix + due_part(forget_at_ms, digest), FORGET_KEY))
    for load in queue.loads:
        digest = loads.load_digest(load.ref.name)
        entries.append(("loads", prefix + loads.load_key(digest), loads.encode_load(load)))
        entries.append(("forget", prefix + due_part(load.forget_at_ms, digest), FORGET_LOAD))
    for number, record in queue.batches.items():
        _sum_up(queue, number, record)
        part = number.to_bytes(4)
        if record.forget_at_ms:
            due = due_part(record.forget_at_ms, part + bytes(12))
            entries.append(("forget", prefix + due, FORGET_BATCH))
        entries.append(("batches", prefix + part, encode_batch(record)))
        entries.append(("batch_names", prefix + text_digest(record.name), part))
    counters.batches = len(queue.batches)
    return entries


def _sum_up(queue: Queue, number: int, record: BatchRecord) -> None:
    """Count a batch's items. Three items of it, of which one was a dead letter, are gone."""
    gone = [bytes([number, at]) * 8 for at in range(3 if record.changed_at_ms else 0)]
    done, dead_gone = gone[:2], gone[2:]
    items = [item for item in queue.items if item.batch == number]
    dead = [item.item_id for item in items if item.state == "dead"] + dead_gone
    added = [item.item_id for item in items] + gone
    record.added, record.done, record.dead = len(added), len(done), len(dead)
    record.added_digest, record.done_digest = ids_digest(added), ids_digest(done)
    record.dead_digest = ids_digest(dead)
    record.loads = sum(load.batch == number for load in queue.loads)
    if record.live == 0 and not record.loads:
        record.forget_at_ms = NOW_MS + 5000


def ids_digest(ids: Iterable[bytes]) -> int:
    hashes = [int.from_bytes(blake2b(each, digest_size=16).digest()) for each in ids]
    return sum(hashes) % (1 << 128)


# --- messages -------------------------------------------------------------------------------------


def _encode_item(item: Item) -> bytes:
    """One pointer; three if the item has a key or attributes."""
    lists = [item.contents]
    if item.key or item.attributes:
        lists += [item.key.encode(), pack_attributes(item.attributes)]
    return _encode(b"", lists)


def _encode_lease(expires_at_ms: int, held: bytes) -> bytes:
    return _encode(expires_at_ms.to_bytes(8, "little"), [held])


def _encode(data: bytes, lists: list[bytes]) -> bytes:
    """A message in one segment; an empty list that is not the first is not set."""
    bodies = [each + bytes(-len(each) % 8) for each in lists]
    pointers, offset = [], 0
    for at, (value, body) in enumerate(zip(lists, bodies, strict=True)):
        words = len(lists) - at - 1 + offset // 8
        pointers.append(words << 2 | 1 | (len(value) << 3 | 2) << 32 if value or not at else 0)
        offset += len(body)
    root = (len(data) // 8) << 32 | len(lists) << 48
    message = struct.pack(f"<Q{len(data)}s{len(pointers)}Q", root, data, *pointers)
    message += b"".join(bodies)
    return struct.pack("<II", 0, len(message) // 8) + message


def _encode_attempts(times_ms: list[int], last_error: str) -> bytes:
    return struct.pack(f">H{len(times_ms)}Q", len(times_ms), *times_ms) + last_error.encode()
