"""The check and the rebuild of a queue's records: loads, batches, keys, producers, and when each is
forgotten.

A rebuild keeps records that can be read. Each says when it is to be forgotten, so the family
`forget` is written again from them. Loads that are under way are dropped.
"""

from collections import Counter
from collections.abc import Generator, Iterable, Iterator

from queueber.db.families import Family
from queueber.db.records import loads, remembered
from queueber.db.records.keys import (
    DIGEST_BYTES,
    NEVER_MS,
    TIME_BYTES,
    due_part,
    split_due_part,
    text_digest,
)
from queueber.db.records.queues import Counters
from queueber.engine.integrity.queue_entries import CheckedQueue, QueueEntries, Violation, readable
from queueber.engine.integrity.states import NO_ITEMS, LiveItems
from queueber.engine.records.batches import batch_reference
from queueber.ids import range_end
from queueber.limits import BATCH_KEEP_MS, ID_BYTES, PRODUCER_ANSWERS_KEPT

HALF_COMMITTED = "is half committed; start the server once to finish it"


class RecordsCheck:
    def __init__(self, queue: CheckedQueue, *, has_tombstones: bool = False) -> None:
        self._has_tombstones = has_tombstones
        self._broken = queue.broken
        self._entries = queue.entries
        self._counters = queue.counters
        self.forget_entries: dict[bytes, bytes] = {}
        """The entries that loads must have in `forget`."""
        self.loads_by_batch: dict[int, int] = {}
        """How many loads under way add to each batch."""

    def run(self, live: dict[int, LiveItems]) -> Iterator[Violation]:
        """`live` has the items that were found of each batch."""
        yield from self.check_loads()
        yield from self._check_dedup_keys()
        expected = yield from self._check_producers()
        expected += yield from self._check_batches(live)
        expected += len(self.forget_entries)
        for due, kind in self.forget_entries.items():
            yield from self._expect(*split_due_part(due), kind)
        forgets = apart = 0
        for due, value in self._entries.walk(Family.FORGET):
            forgets += 1
            apart += value[:1] in (remembered.FORGET_KEY, remembered.FORGET_TOMBSTONE)
            yield from self._check_forget(due, value)
        counted = self._counters.forgets
        if not forgets == expected + apart == counted:
            text = f"{expected} records to forget, {forgets} entries, {counted} counted"
            yield self._broken("I11", text)

    def check_loads(self) -> Iterator[Violation]:
        digest, rows, staged = b"", 0, 0
        for key, value in self._entries.walk(Family.LOADS):
            if key >= loads.LOADS_END:
                yield from self._check_loaded(key, value)
            elif loads.is_load_key(key):
                yield from self._check_rows(digest, rows, staged)
                digest, staged = key[1:], 0
                rows = yield from self._check_load(key, value)
            else:
                part = loads.decode_part(value)
                staged += part.rows
                if key != loads.part_key(digest, part.ref):
                    yield self._broken("I13", f"part {key.hex()} belongs to no load")
        yield from self._check_rows(digest, rows, staged)

    def _check_load(self, key: bytes, value: bytes) -> Generator[Violation, None, int]:
        load = loads.decode_load(value)
        digest = loads.load_digest(load.ref.name)
        if key != loads.load_key(digest):
            yield self._broken("I13", f"load {load.ref.name!r} is not stored under its name")
        if load.is_committing:
            yield self._broken("I13", f"load {load.ref.name!r} {HALF_COMMITTED}")
        if range_end(load.id_head) > self._counters.last_id:
            yield self._broken("I8", f"the ids of load {load.ref.name!r} go beyond last_id")
        if load.batch:
            self.loads_by_batch[load.batch] = self.loads_by_batch.get(load.batch, 0) + 1
        self.forget_entries[due_part(load.forget_at_ms, digest)] = remembered.FORGET_LOAD
        return load.rows

    def _check_loaded(self, key: bytes, value: bytes) -> Iterator[Violation]:
        loaded = loads.decode_loaded(value)
        digest = loads.loaded_digest(loaded.ref.name)
        if key != loads.loaded_key(digest):
            yield self._broken("I13", f"load {loaded.ref.name!r} is not stored under its name")
        self.forget_entries[due_part(loaded.forget_at_ms, digest)] = remembered.FORGET_LOADED

    def _check_rows(self, digest: bytes, rows: int, staged: int) -> Iterator[Violation]:
        if rows != staged:
            text = f"load {digest.hex()} has {rows} rows, but its parts have {staged}"
            yield self._broken("I13", text)

    def _check_dedup_keys(self) -> Iterator[Violation]:
        for digest, value in self._entries.walk(Family.KEYS):
            item_id, forget_at_ms = remembered.decode_key_entry(value)
            if not self._is_named(digest, due_part(forget_at_ms, item_id)):
                yield from self._expect(forget_at_ms, digest, remembered.FORGET_KEY)

    def _is_named(self, digest: bytes, due: bytes) -> bool:
        """Whether an entry of several names the key. It is at the key's item or after it, and
        others of the same time may be in between: of producers, and of other partitions."""
        for found, entry in self._entries.walk(Family.FORGET, due):
            if found[:TIME_BYTES] != due[:TIME_BYTES]:
                break
            is_of_keys = entry[:1] == remembered.FORGET_KEY
            if is_of_keys and digest in remembered.split_digests(entry[1:]):
                return True
        return False

    def _check_producers(self) -> Generator[Violation, None, int]:
        count = 0
        for key, value in self._entries.walk(Family.PRODUCERS):
            if len(key) == DIGEST_BYTES:
                count += 1
                head = remembered.decode_producer(value)
                yield from self._expect(head.forget_at_ms, key, remembered.FORGET_PRODUCER)
                if self._entries.get(Family.PRODUCERS, key + head.sequence.to_bytes(8)) is None:
                    yield self._broken("I11", f"producer {key.hex()} has no last answer")
            else:
                remembered.decode_answer(value)
                stored = self._entries.get(Family.PRODUCERS, key[:DIGEST_BYTES])
                sequence = int.from_bytes(key[DIGEST_BYTES:])
                last = 0 if stored is None else remembered.decode_producer(stored).sequence
                if not last - PRODUCER_ANSWERS_KEPT < sequence <= last:
                    yield self._broken("I11", f"answer {key.hex()} belongs to no recent call")
        return count

    def _check_batches(self, live: dict[int, LiveItems]) -> Generator[Violation, None, int]:
        loads_by_batch = self.loads_by_batch.copy()
        count = forgets = 0
        for part, value in self._entries.walk(Family.BATCHES):
            count += 1
            number, record = int.from_bytes(part), remembered.decode_batch(value)
            found = live.pop(number, NO_ITEMS)
            ended = record.done_digest + record.dead_digest
            missing = record.added_digest - ended - found.digest
            if record.live != found.items or missing % remembered.DIGEST_MODULUS:
                yield self._broken("I10", f"batch {record.name!r} is {record}, but has {found}")
            if self._entries.get(Family.BATCH_NAMES, text_digest(record.name)) != part:
                yield self._broken("I10", f"batch {record.name!r} is not stored under its name")
            if record.loads != (adding := loads_by_batch.pop(number, 0)):
                text = f"batch {record.name!r} counts {record.loads} loads, but {adding} add to it"
                yield self._broken("I13", text)
            if number > self._counters.last_batch:
                yield self._broken("I10", f"batch {record.name!r} is newer than last_batch")
            if record.forget_at_ms:
                forgets += 1
                reference = batch_reference(number)
                yield from self._expect(record.forget_at_ms, reference, remembered.FORGET_BATCH)
            elif record.live == 0 and not record.loads:
                text = f"batch {record.name!r} has ended, but no entry says when to forget it"
                yield self._broken("I11", text)
        names = self._entries.count(Family.BATCH_NAMES)
        if not names == count == self._counters.batches:
            text = f"{count} batches, {names} names, {self._counters.batches} counted"
            yield self._broken("I10", text)
        for number in loads_by_batch:
            yield self._broken("I13", f"a load adds to batch {number}, which does not exist")
        for number in live:
            yield self._broken("I10", f"items name batch {number}, which does not exist")
        return forgets

    def _expect(self, at_ms: int, reference: bytes, kind: bytes) -> Iterator[Violation]:
        if self._entries.get(Family.FORGET, due_part(at_ms, reference)) != kind:
            text = f"no entry says when to forget {kind.decode()} {reference.hex()}"
            yield self._broken("I11", text)

    def _check_forget(self, due: bytes, kind: bytes) -> Iterator[Violation]:
        """An entry of keys may name some that were added anew, or belong to another entry."""
        at_ms, reference = split_due_part(due)
        if at_ms < self._counters.forget_due_ms:
            yield self._broken("I6", f"forget has {due.hex()} before its first known entry")
        at = None
        if kind[:1] == remembered.FORGET_KEY:
            if len(kind[1:]) % DIGEST_BYTES == 0:
                at = at_ms
        elif kind[:1] == remembered.FORGET_TOMBSTONE and self._has_tombstones:
            if len(kind) == 1 + DIGEST_BYTES + ID_BYTES:
                at = at_ms
        elif kind == remembered.FORGET_PRODUCER:
            if (value := self._entries.get(Family.PRODUCERS, reference)) is not None:
                at = remembered.decode_producer(value).forget_at_ms
        elif kind == remembered.FORGET_BATCH:
            part = reference[: remembered.BATCH_NUMBER_BYTES]
            if (value := self._entries.get(Family.BATCHES, part)) is not None:
                at = remembered.decode_batch(value).forget_at_ms
        elif self.forget_entries.get(due) == kind:
            at = at_ms
        if at != at_ms:
            text = f"forget has {due.hex()}, but nothing is to be forgotten then"
            yield self._broken("I11", text)


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

    def run(
        self,
        counters: Counters,
        live: dict[int, LiveItems],
        tombstones: Iterable[tuple[int, bytes, bytes]] = (),
    ) -> None:
        """Write the records again; `live` has the items that are left of each batch, `tombstones`
        the entries that delete those of a topic."""
        for family in (Family.FORGET, Family.BATCH_NAMES):
            self._entries.delete_all(self._batch, family)
        self._store.write(self._batch)
        self._batch = self._store.batch()
        for number, record in self.batches.items():
            self._write_batch(number, record, live.get(number, NO_ITEMS))
        self._keep_dedup_keys()
        self._keep_producers()
        self._keep_loads()
        for tombstone in tombstones:
            self._forget_at(*tombstone)
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
            if not remembered.is_key_entry(value) or len(digest) != DIGEST_BYTES:
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
            loaded = readable(loads.decode_loaded, value) if key >= loads.LOADS_END else None
            digest = b"" if loaded is None else loads.loaded_digest(loaded.ref.name)
            if loaded is not None and key == loads.loaded_key(digest):
                self._forget_at(loaded.forget_at_ms, digest, remembered.FORGET_LOADED)
            else:
                self._drop(Family.LOADS, key, "records of loads: those under way are dropped")
