"""The check of what a queue remembers: batches, keys, producers, what to forget when, results."""

from collections.abc import Generator, Iterator

from queueber.db.families import Family
from queueber.db.records.bookkeeping import (
    BATCH_NUMBER_BYTES,
    FORGET_BATCH,
    FORGET_KEY,
    FORGET_PRODUCER,
    batch_number_part,
    decode_answer,
    decode_batch,
    decode_key_entry,
    decode_producer,
)
from queueber.db.records.keys import DIGEST_BYTES, due_part, split_due_part, text_digest
from queueber.db.records.log import decode_block, decode_log_head
from queueber.db.records.results import decode_result
from queueber.engine.integrity.check_items import Live
from queueber.engine.integrity.queue_check import QueueCheck, Violation
from queueber.engine.records.batches import batch_reference
from queueber.limits import PRODUCER_ANSWERS_KEPT

_MODULUS = 1 << (8 * DIGEST_BYTES)


class RegistryCheck(QueueCheck):
    def run(
        self, live: dict[int, Live], loads: dict[bytes, bytes], held: dict[int, int]
    ) -> Iterator[Violation]:
        """`live` has what was found of each batch's items, `held` how many loads hold each batch,
        and `loads` the entries that loads have in `forget`."""
        expected = yield from self._check_keys()
        expected += yield from self._check_producers()
        expected += yield from self._check_batches(live, held)
        expected += len(loads)
        for due, kind in loads.items():
            yield from self._expect(*split_due_part(due), kind)
        forgets = 0
        for due, kind in self._entries(Family.FORGET):
            forgets += 1
            yield from self._check_forget(due, kind, loads)
        if not forgets == expected == self._counters.forgets:
            yield self._broken(
                "I11",
                f"{expected} things to forget, {forgets} entries, {self._counters.forgets} counted",
            )
        yield from self._check_results()

    def _check_keys(self) -> Generator[Violation, None, int]:
        count = 0
        for digest, value in self._entries(Family.KEYS):
            count += 1
            yield from self._expect(decode_key_entry(value)[1], digest, FORGET_KEY)
        return count

    def _check_producers(self) -> Generator[Violation, None, int]:
        count = 0
        for key, value in self._entries(Family.PRODUCERS):
            if len(key) == DIGEST_BYTES:
                count += 1
                head = decode_producer(value)
                yield from self._expect(head.forget_at_ms, key, FORGET_PRODUCER)
                if self._get(Family.PRODUCERS, key + head.sequence.to_bytes(8)) is None:
                    yield self._broken("I11", f"producer {key.hex()} has no last answer")
            else:
                decode_answer(value)
                stored = self._get(Family.PRODUCERS, key[:DIGEST_BYTES])
                sequence = int.from_bytes(key[DIGEST_BYTES:])
                last = 0 if stored is None else decode_producer(stored).sequence
                if not last - PRODUCER_ANSWERS_KEPT < sequence <= last:
                    yield self._broken("I11", f"answer {key.hex()} belongs to no recent call")
        return count

    def _check_batches(
        self, live: dict[int, Live], held: dict[int, int]
    ) -> Generator[Violation, None, int]:
        count = forgets = 0
        for part, value in self._entries(Family.BATCHES):
            count += 1
            number, record = int.from_bytes(part), decode_batch(value)
            found = live.pop(number, Live(0, 0))
            left = record.added_digest - record.done_digest - record.dead_digest
            if record.live != found.items or left % _MODULUS != found.digest % _MODULUS:
                yield self._broken("I10", f"batch {record.name!r} is {record}, but has {found}")
            if self._get(Family.BATCH_NAMES, text_digest(record.name)) != part:
                yield self._broken("I10", f"batch {record.name!r} is not known by its name")
            if record.loads != held.pop(number, 0):
                yield self._broken(
                    "I13", f"batch {record.name!r} is held by other loads than it has"
                )
            if number > self._counters.last_batch:
                yield self._broken("I10", f"batch {record.name!r} is newer than last_batch")
            if record.forget_at_ms:
                forgets += 1
                reference = batch_reference(number)
                yield from self._expect(record.forget_at_ms, reference, FORGET_BATCH)
            elif record.live == 0 and not record.loads:
                yield self._broken("I11", f"batch {record.name!r} ended, and is never forgotten")
        names = sum(1 for _ in self._entries(Family.BATCH_NAMES))
        if not names == count == self._counters.batches:
            yield self._broken(
                "I10", f"{count} batches, {names} names, {self._counters.batches} counted"
            )
        for number in held:
            yield self._broken("I13", f"a load holds batch {number}, which does not exist")
        for number in live:
            yield self._broken("I10", f"items name batch {number}, which does not exist")
        return forgets

    def _expect(self, at_ms: int, reference: bytes, kind: bytes) -> Iterator[Violation]:
        if self._get(Family.FORGET, due_part(at_ms, reference)) != kind:
            yield self._broken("I11", f"nothing forgets {kind.decode()} {reference.hex()}")

    def _check_forget(
        self, due: bytes, kind: bytes, loads: dict[bytes, bytes]
    ) -> Iterator[Violation]:
        at_ms, reference = split_due_part(due)
        if at_ms < self._counters.forget_due_ms:
            yield self._broken("I6", f"forget has {due.hex()} below its mark")
        at = None
        if kind == FORGET_KEY:
            if (value := self._get(Family.KEYS, reference)) is not None:
                at = decode_key_entry(value)[1]
        elif kind == FORGET_PRODUCER:
            if (value := self._get(Family.PRODUCERS, reference)) is not None:
                at = decode_producer(value).forget_at_ms
        elif kind == FORGET_BATCH:
            part = batch_number_part(int.from_bytes(reference[:BATCH_NUMBER_BYTES]))
            if (value := self._get(Family.BATCHES, part)) is not None:
                at = decode_batch(value).forget_at_ms
        elif loads.get(due) == kind:
            at = at_ms
        if at != at_ms:
            yield self._broken("I11", f"forget has {due.hex()}, but nothing is to be forgotten")

    def _check_results(self) -> Iterator[Violation]:
        """I12: as many results were written as items were completed, and none of one still here."""
        stored = self._get(Family.LOGS, b"")
        written = 0 if stored is None else decode_log_head(stored).next_offset
        if written != self._counters.completed_total:
            yield self._broken(
                "I12", f"{written} results for {self._counters.completed_total} completed items"
            )
        for key, value in self._entries(Family.LOG_BLOCKS):
            block = decode_block(self._prefix + key, value)
            count = block.end_offset - block.first_offset
            rows = block.rows(block.first_offset, rows_max=count, bytes_max=len(value))
            ids = [decode_result(row)[0] for row in rows]
            for item_id, item in zip(ids, self._get_many(Family.ITEMS, ids), strict=True):
                if item is not None:
                    yield self._broken("I12", f"{item_id.hex()} has a result and is still here")
