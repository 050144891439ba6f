"""Rebuild what a queue remembers: batches, keys, producers, loads, what to forget when.

Records that can be read stay. What is to be forgotten is told by the records, so the family
`forget` is written anew from them. Loads that are under way are dropped.
"""

import struct
from collections.abc import Callable, Iterator
from typing import TypeVar

from queueber.db.families import Family
from queueber.db.records.bookkeeping import (
    BATCH_NUMBER_BYTES,
    DIGEST_MODULUS,
    FORGET_BATCH,
    FORGET_KEY,
    FORGET_LOADED,
    FORGET_PRODUCER,
    KEY_ENTRY_BYTES,
    BatchRecord,
    batch_number_part,
    decode_answer,
    decode_batch,
    decode_key_entry,
    decode_producer,
    encode_batch,
)
from queueber.db.records.counters import Counters
from queueber.db.records.keys import (
    DIGEST_BYTES,
    NEVER_MS,
    PREFIX_BYTES,
    due_part,
    prefix_end,
    text_digest,
)
from queueber.db.records.loads import decode_loaded, loaded_digest, loaded_key, loads_end
from queueber.db.store.contract import Store
from queueber.engine.integrity.check_items import Live
from queueber.engine.records.batches import batch_reference
from queueber.limits import BATCH_KEEP_MS, PRODUCER_ANSWERS_KEPT

T = TypeVar("T")


class RegistryRebuild:
    def __init__(self, store: Store, prefix: bytes) -> None:
        self._store = store
        self._prefix = prefix
        self._batch = store.batch()
        self._reminders = 0
        self._first_reminder_ms = NEVER_MS
        self.lost: dict[str, int] = {}
        self.batches: dict[int, BatchRecord] = {}

    def read_batches(self) -> None:
        """Those that can be read, by number; items of others belong to none."""
        names: set[str] = set()
        for part, value in self._walk(Family.BATCHES):
            record = _decoded(decode_batch, value)
            if record is None or len(part) != BATCH_NUMBER_BYTES or record.name in names:
                self._drop(Family.BATCHES, part, "batches that cannot be read")
            else:
                self.batches[int.from_bytes(part)] = record
                names.add(record.name)

    def run(self, counters: Counters, live: dict[int, Live]) -> None:
        """`live` is what there is of each batch's items."""
        for family in (Family.FORGET, Family.BATCH_NAMES):
            self._batch.delete_range(family, self._prefix, prefix_end(self._prefix))
        self._store.write(self._batch)
        self._batch = self._store.batch()
        for number, record in self.batches.items():
            self._write_batch(number, record, live.get(number, Live(0, 0)))
        self._keep_keys()
        self._keep_producers()
        self._keep_loads()
        self._store.write(self._batch)
        counters.batches = len(self.batches)
        counters.last_batch = max([counters.last_batch, *self.batches])
        counters.forgets, counters.forget_due_ms = self._reminders, self._first_reminder_ms

    def _lose(self, what: str, count: int = 1) -> None:
        self.lost[what] = self.lost.get(what, 0) + count

    def _drop(self, family: Family, part: bytes, what: str) -> None:
        self._batch.delete(family, self._prefix + part)
        self._lose(what)

    def _walk(self, family: Family) -> Iterator[tuple[bytes, bytes]]:
        for key, value in self._store.walk(family, self._prefix, prefix_end(self._prefix)):
            yield key[PREFIX_BYTES:], value

    def _remind(self, at_ms: int, reference: bytes, kind: bytes) -> None:
        self._batch.put(Family.FORGET, self._prefix + due_part(at_ms, reference), kind)
        self._reminders += 1
        self._first_reminder_ms = min(self._first_reminder_ms, at_ms)

    def _write_batch(self, number: int, record: BatchRecord, live: Live) -> None:
        """Items that are gone without a trace count as dead, so that the sums are right again."""
        dead = record.added - record.done - live.items
        if dead < record.dead:
            # More are here than it knows of: what ended last did so unseen.
            record.added += record.dead - dead
            record.added_digest = record.done_digest + record.dead_digest + live.digest
            dead = record.dead
        elif dead > record.dead:
            self._lose("items of batches that are lost: they count as dead", dead - record.dead)
        record.dead = dead
        left = record.added_digest - record.done_digest - live.digest
        record.added_digest %= DIGEST_MODULUS
        record.dead_digest = left % DIGEST_MODULUS
        record.loads = 0
        if record.live == 0 and not record.forget_at_ms:
            record.forget_at_ms = record.changed_at_ms + BATCH_KEEP_MS
        part = batch_number_part(number)
        self._batch.put(Family.BATCHES, self._prefix + part, encode_batch(record))
        self._batch.put(Family.BATCH_NAMES, self._prefix + text_digest(record.name), part)
        if record.forget_at_ms:
            self._remind(record.forget_at_ms, batch_reference(number), FORGET_BATCH)

    def _keep_keys(self) -> None:
        for digest, value in self._walk(Family.KEYS):
            if len(value) != KEY_ENTRY_BYTES or len(digest) != DIGEST_BYTES:
                self._drop(Family.KEYS, digest, "keys: an add with one of them is not a duplicate")
            else:
                self._remind(decode_key_entry(value)[1], digest, FORGET_KEY)

    def _keep_producers(self) -> None:
        """A producer is nothing without its last answer."""
        last_sequence: dict[bytes, int] = {}
        answers: list[bytes] = []
        for key, value in self._walk(Family.PRODUCERS):
            if len(key) != DIGEST_BYTES:
                answers.append(key)
                continue
            head = _decoded(decode_producer, value)
            last = head and self._get(Family.PRODUCERS, key + head.sequence.to_bytes(8))
            if head is None or last is None or _decoded(decode_answer, last) is None:
                self._drop(Family.PRODUCERS, key, "producers: their calls are new when repeated")
            else:
                last_sequence[key] = head.sequence
                self._remind(head.forget_at_ms, key, FORGET_PRODUCER)
        for key in answers:
            newest = last_sequence.get(key[:DIGEST_BYTES], 0)
            sequence = int.from_bytes(key[DIGEST_BYTES:])
            is_recent = newest - PRODUCER_ANSWERS_KEPT < sequence <= newest
            value = self._get(Family.PRODUCERS, key) or b""
            if not is_recent or _decoded(decode_answer, value) is None:
                self._batch.delete(Family.PRODUCERS, self._prefix + key)

    def _keep_loads(self) -> None:
        for key, value in self._walk(Family.LOADS):
            loaded = _decoded(decode_loaded, value) if key >= loads_end() else None
            if loaded is not None and key == loaded_key(loaded_digest(loaded.ref.name)):
                self._remind(loaded.forget_at_ms, loaded_digest(loaded.ref.name), FORGET_LOADED)
            else:
                self._drop(Family.LOADS, key, "records of loads: those under way are dropped")

    def _get(self, family: Family, part: bytes) -> bytes | None:
        return self._store.get(family, self._prefix + part)


def _decoded(decode: Callable[[bytes], T], value: bytes) -> T | None:
    try:
        return decode(value)
    except (ValueError, IndexError, struct.error):
        return None
    except Exception:  # noqa: BLE001  bytes that are no message fail in many ways
        return None
