"""Rebuild a queue's records: batches, dedup keys, producers, loads, and when each is forgotten.

Records that can be read are kept. Each says when it is to be forgotten, so the family `forget` is
written again from them. Loads that are under way are dropped.
"""

from collections import Counter

from queueber.db.families import Family
from queueber.db.records import loads, remembered
from queueber.db.records.keys import DIGEST_BYTES, NEVER_MS, due_part, text_digest
from queueber.db.records.queues import Counters
from queueber.engine.integrity.check_items import NO_ITEMS, LiveItems
from queueber.engine.integrity.queue_entries import QueueEntries, readable
from queueber.engine.records.batches import batch_reference
from queueber.limits import BATCH_KEEP_MS, PRODUCER_ANSWERS_KEPT


class RecordsRebuild:
    def __init__(self, entries: QueueEntries, lost: Counter[str]) -> None:
        """`lost` counts what cannot be kept."""
        self._entries = entries
        self._store = entries.store
        self._prefix = entries.prefix
        self._lost = lost
        self._batch = entries.store.batch()
        self._forgets = 0
        self._forget_due_ms = NEVER_MS
        self.batches: dict[int, remembered.BatchRecord] = {}

    def read_batches(self) -> None:
        """Read `batches` by number. Items of a batch that cannot be read will belong to none."""
        names: set[str] = set()
        for part, value in self._entries.walk(Family.BATCHES):
            record = readable(remembered.decode_batch, value)
            if record is None or len(part) != remembered.BATCH_NUMBER_BYTES or record.name in names:
                self._drop(Family.BATCHES, part, "batches that cannot be read")
            else:
                self.batches[int.from_bytes(part)] = record
                names.add(record.name)

    def run(self, counters: Counters, live: dict[int, LiveItems]) -> None:
        """Write the records again; `live` has the items that are left of each batch."""
        for family in (Family.FORGET, Family.BATCH_NAMES):
            self._entries.delete_all(self._batch, family)
        self._store.write(self._batch)
        self._batch = self._store.batch()
        for number, record in self.batches.items():
            self._write_batch(number, record, live.get(number, NO_ITEMS))
        self._keep_dedup_keys()
        self._keep_producers()
        self._keep_loads()
        self._store.write(self._batch)
        counters.batches = len(self.batches)
        counters.last_batch = max([counters.last_batch, *self.batches])
        counters.forgets, counters.forget_due_ms = self._forgets, self._forget_due_ms

    def _drop(self, family: Family, part: bytes, what: str) -> None:
        self._batch.delete(family, self._prefix + part)
        self._lost[what] += 1

    def _forget_at(self, at_ms: int, reference: bytes, kind: bytes) -> None:
        self._batch.put(Family.FORGET, self._prefix + due_part(at_ms, reference), kind)
        self._forgets += 1
        self._forget_due_ms = min(self._forget_due_ms, at_ms)

    def _write_batch(self, number: int, record: remembered.BatchRecord, live: LiveItems) -> None:
        """Count items that were lost as dead, so that the sums are right again."""
        dead = record.added - record.done - live.items
        if dead < record.dead:
            # More items are left than the record counts: its last changes were lost.
            record.added += record.dead - dead
            record.added_digest = record.done_digest + record.dead_digest + live.digest
            dead = record.dead
        elif dead > record.dead:
            self._lost["items of batches that are lost: they count as dead"] += dead - record.dead
        record.dead = dead
        left = record.added_digest - record.done_digest - live.digest
        record.added_digest %= remembered.DIGEST_MODULUS
        record.dead_digest = left % remembered.DIGEST_MODULUS
        record.loads = 0
        if record.live == 0 and not record.forget_at_ms:
            record.forget_at_ms = record.changed_at_ms + BATCH_KEEP_MS
        part = remembered.batch_number_part(number)
        self._batch.put(Family.BATCHES, self._prefix + part, remembered.encode_batch(record))
        self._batch.put(Family.BATCH_NAMES, self._prefix + text_digest(record.name), part)
        if record.forget_at_ms:
            self._forget_at(record.forget_at_ms, batch_reference(number), remembered.FORGET_BATCH)

    def _keep_dedup_keys(self) -> None:
        for digest, value in self._entries.walk(Family.KEYS):
            if len(value) != remembered.KEY_ENTRY_BYTES or len(digest) != DIGEST_BYTES:
                self._drop(Family.KEYS, digest, "keys: an add with one of them is not a duplicate")
            else:
                _, forget_at_ms = remembered.decode_key_entry(value)
                self._forget_at(forget_at_ms, digest, remembered.FORGET_KEY)

    def _keep_producers(self) -> None:
        """A producer without its last answer is dropped."""
        last_sequence: dict[bytes, int] = {}
        answers: list[bytes] = []
        for key, value in self._entries.walk(Family.PRODUCERS):
            if len(key) != DIGEST_BYTES:
                answers.append(key)
                continue
            head = readable(remembered.decode_producer, value)
            last = head and self._entries.get(Family.PRODUCERS, key + head.sequence.to_bytes(8))
            if head is None or last is None or readable(remembered.decode_answer, last) is None:
                self._drop(Family.PRODUCERS, key, "producers: their calls are new when repeated")
            else:
                last_sequence[key] = head.sequence
                self._forget_at(head.forget_at_ms, key, remembered.FORGET_PRODUCER)
        for key in answers:
            newest = last_sequence.get(key[:DIGEST_BYTES], 0)
            sequence = int.from_bytes(key[DIGEST_BYTES:])
            is_recent = newest - PRODUCER_ANSWERS_KEPT < sequence <= newest
            value = self._entries.get(Family.PRODUCERS, key) or b""
            if not is_recent or readable(remembered.decode_answer, value) is None:
                self._batch.delete(Family.PRODUCERS, self._prefix + key)

    def _keep_loads(self) -> None:
        for key, value in self._entries.walk(Family.LOADS):
            loaded = readable(loads.decode_loaded, value) if key >= loads.loads_end() else None
            digest = b"" if loaded is None else loads.loaded_digest(loaded.ref.name)
            if loaded is not None and key == loads.loaded_key(digest):
                self._forget_at(loaded.forget_at_ms, digest, remembered.FORGET_LOADED)
            else:
                self._drop(Family.LOADS, key, "records of loads: those under way are dropped")
