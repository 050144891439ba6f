"""The check of a queue's records: batches, dedup keys, producers, and when each is forgotten."""

from collections.abc import Generator, Iterator

from queueber.db.families import Family
from queueber.db.records.keys import DIGEST_BYTES, due_part, split_due_part, text_digest
from queueber.db.records.remembered import (
    BATCH_NUMBER_BYTES,
    DIGEST_MODULUS,
    FORGET_BATCH,
    FORGET_KEY,
    FORGET_PRODUCER,
    batch_number_part,
    decode_answer,
    decode_batch,
    decode_key_entry,
    decode_producer,
)
from queueber.engine.integrity.check_items import NO_ITEMS, LiveItems
from queueber.engine.integrity.queue_entries import CheckedQueue, Violation
from queueber.engine.records.batches import batch_reference
from queueber.limits import PRODUCER_ANSWERS_KEPT


class RecordsCheck:
    def __init__(self, queue: CheckedQueue) -> None:
        self._broken = queue.broken
        self._entries = queue.entries
        self._counters = queue.counters

    def run(
        self,
        live: dict[int, LiveItems],
        loads: dict[bytes, bytes],
        loads_by_batch: dict[int, int],
    ) -> Iterator[Violation]:
        """`live` has the items that were found of each batch, `loads` the entries that loads must
        have in `forget`."""
        expected = yield from self._check_dedup_keys()
        expected += yield from self._check_producers()
        expected += yield from self._check_batches(live, loads_by_batch)
        expected += len(loads)
        for due, kind in loads.items():
            yield from self._expect(*split_due_part(due), kind)
        forgets = 0
        for due, kind in self._entries.walk(Family.FORGET):
            forgets += 1
            yield from self._check_forget(due, kind, loads)
        counted = self._counters.forgets
        if not forgets == expected == counted:
            text = f"{expected} records to forget, {forgets} entries, {counted} counted"
            yield self._broken("I11", text)

    def _check_dedup_keys(self) -> Generator[Violation, None, int]:
        count = 0
        for digest, value in self._entries.walk(Family.KEYS):
            count += 1
            yield from self._expect(decode_key_entry(value)[1], digest, FORGET_KEY)
        return count

    def _check_producers(self) -> Generator[Violation, None, int]:
        count = 0
        for key, value in self._entries.walk(Family.PRODUCERS):
            if len(key) == DIGEST_BYTES:
                count += 1
                head = decode_producer(value)
                yield from self._expect(head.forget_at_ms, key, FORGET_PRODUCER)
                if self._entries.get(Family.PRODUCERS, key + head.sequence.to_bytes(8)) is None:
                    yield self._broken("I11", f"producer {key.hex()} has no last answer")
            else:
                decode_answer(value)
                stored = self._entries.get(Family.PRODUCERS, key[:DIGEST_BYTES])
                sequence = int.from_bytes(key[DIGEST_BYTES:])
                last = 0 if stored is None else decode_producer(stored).sequence
                if not last - PRODUCER_ANSWERS_KEPT < sequence <= last:
                    yield self._broken("I11", f"answer {key.hex()} belongs to no recent call")
        return count

    def _check_batches(
        self, live: dict[int, LiveItems], loads_by_batch: dict[int, int]
    ) -> Generator[Violation, None, int]:
        count = forgets = 0
        for part, value in self._entries.walk(Family.BATCHES):
            count += 1
            number, record = int.from_bytes(part), decode_batch(value)
            found = live.pop(number, NO_ITEMS)
            left = record.added_digest - record.done_digest - record.dead_digest
            if record.live != found.items or left % DIGEST_MODULUS != found.digest % DIGEST_MODULUS:
                yield self._broken("I10", f"batch {record.name!r} is {record}, but has {found}")
            if self._entries.get(Family.BATCH_NAMES, text_digest(record.name)) != part:
                yield self._broken("I10", f"batch {record.name!r} is not stored under its name")
            if record.loads != (loads := loads_by_batch.pop(number, 0)):
                text = f"batch {record.name!r} counts {record.loads} loads, but {loads} add to it"
                yield self._broken("I13", text)
            if number > self._counters.last_batch:
                yield self._broken("I10", f"batch {record.name!r} is newer than last_batch")
            if record.forget_at_ms:
                forgets += 1
                reference = batch_reference(number)
                yield from self._expect(record.forget_at_ms, reference, FORGET_BATCH)
            elif record.live == 0 and not record.loads:
                yield self._broken(
                    "I11", f"batch {record.name!r} has ended, but no entry says when to forget it"
                )
        names = self._entries.count(Family.BATCH_NAMES)
        if not names == count == self._counters.batches:
            yield self._broken(
                "I10", f"{count} batches, {names} names, {self._counters.batches} counted"
            )
        for number in loads_by_batch:
            yield self._broken("I13", f"a load adds to batch {number}, which does not exist")
        for number in live:
            yield self._broken("I10", f"items name batch {number}, which does not exist")
        return forgets

    def _expect(self, at_ms: int, reference: bytes, kind: bytes) -> Iterator[Violation]:
        if self._entries.get(Family.FORGET, due_part(at_ms, reference)) != kind:
            yield self._broken(
                "I11", f"no entry says when to forget {kind.decode()} {reference.hex()}"
            )

    def _check_forget(
        self, due: bytes, kind: bytes, loads: dict[bytes, bytes]
    ) -> Iterator[Violation]:
        at_ms, reference = split_due_part(due)
        if at_ms < self._counters.forget_due_ms:
            yield self._broken("I6", f"forget has {due.hex()} before its first known entry")
        at = None
        if kind == FORGET_KEY:
            if (value := self._entries.get(Family.KEYS, reference)) is not None:
                at = decode_key_entry(value)[1]
        elif kind == FORGET_PRODUCER:
            if (value := self._entries.get(Family.PRODUCERS, reference)) is not None:
                at = decode_producer(value).forget_at_ms
        elif kind == FORGET_BATCH:
            part = batch_number_part(int.from_bytes(reference[:BATCH_NUMBER_BYTES]))
            if (value := self._entries.get(Family.BATCHES, part)) is not None:
                at = decode_batch(value).forget_at_ms
        elif loads.get(due) == kind:
            at = at_ms
        if at != at_ms:
            yield self._broken(
                "I11", f"forget has {due.hex()}, but nothing is to be forgotten then"
            )
