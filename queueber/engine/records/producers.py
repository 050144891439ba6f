"""Producers: a call that is sent again gets the same answer, and its items are stored once.

A producer numbers its calls from 1 in each of its epochs. Once a producer has begun a new epoch,
the server refuses calls of older ones: a job that was replaced cannot write any more.
"""

from collections.abc import Sequence
from functools import reduce
from typing import Any
from zlib import crc32

from queueber.db.families import Family
from queueber.db.records import remembered as codec
from queueber.db.records.keys import text_digest
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.records.retention import Retention
from queueber.errors import Aborted, invariant
from queueber.limits import PRODUCER_ANSWERS_KEPT, PRODUCER_KEEP_MS
from queueber.model import Added, PackedContents, Producer

PRODUCER_KIND = b"producer"
"""Keeps producers and keys of the same text apart in the family `forget`."""


class Producers:
    __slots__ = ("_retention",)

    def __init__(self, retention: Retention) -> None:
        self._retention = retention
        retention.register(codec.FORGET_PRODUCER, self._look_at)

    def call(
        self,
        tx: Transaction[Any],
        producer: Producer,
        contents: Sequence[bytes],
        *,
        number_decides: bool = False,
    ) -> "ProducerCall":
        """A call of a producer that adds items with these contents. If its number decides, a call
        with a number that is known is a repeat, whatever its contents are."""
        return ProducerCall(tx, self._retention, producer, contents, number_decides)

    def _look_at(self, tx: Transaction[Any], at_ms: int, digest: bytes) -> None:
        key = tx.prefix + digest
        stored = tx.store.get(Family.PRODUCERS, key)
        invariant(stored is not None, "I11", queue=tx.queue.name, producer=digest.hex())
        head = codec.decode_producer(stored or b"")
        keep_until_ms = head.seen_at_ms + PRODUCER_KEEP_MS
        if keep_until_ms > tx.now_ms:
            kept = codec.encode_producer(head._replace(forget_at_ms=keep_until_ms))
            tx.batch.put(Family.PRODUCERS, key, kept)
            self._retention.remember(tx, keep_until_ms, digest, codec.FORGET_PRODUCER)
        else:
            tx.batch.delete(Family.PRODUCERS, key)
            tx.batch.delete_many(Family.PRODUCERS, _answer_keys(key, head.sequence))


class ProducerCall:
    """One call of a producer: whether it is new, and what the store remembers of it."""

    def __init__(
        self,
        tx: Transaction[Any],
        retention: Retention,
        producer: Producer,
        contents: Sequence[bytes],
        number_decides: bool,
    ) -> None:
        self._retention = retention
        self._producer = producer
        self._checksum = _checksum(contents)
        self._digest = text_digest(producer.id, PRODUCER_KIND)
        self._key = tx.prefix + self._digest
        stored = tx.store.get(Family.PRODUCERS, self._key)
        self._head = None if stored is None else codec.decode_producer(stored)
        self.repeated: Added | None = None
        """The first answer to the call, without ids if it was more than `PRODUCER_ANSWERS_KEPT`
        calls ago; None if the call is new."""
        self._check(tx, len(contents), number_decides)

    def _check(self, tx: Transaction[Any], items: int, number_decides: bool) -> None:
        head, producer = self._head, self._producer
        epoch = -1 if head is None else head.epoch
        if producer.epoch < epoch:
            raise Aborted(
                f"producer: {producer.id!r} is in epoch {epoch}, and epoch {producer.epoch} is "
                "over; stop, somebody else has taken over",
                epoch=epoch,
            )
        last = head.sequence if head is not None and producer.epoch == epoch else 0
        if producer.sequence > last + 1:
            raise Aborted(
                f"producer: sequence {producer.sequence} of {producer.id!r} leaves a gap; "
                f"{last + 1} comes next in epoch {producer.epoch}",
                expected=last + 1,
                received=producer.sequence,
                **({} if head is None else {"epoch": epoch}),
            )
        self.last = max(last, producer.sequence)
        """The highest number of a call of this epoch, this one included."""
        if producer.sequence <= last:
            answer = tx.store.get(Family.PRODUCERS, self._answer_key(producer.sequence))
            # An older call was stored as well; only its ids are forgotten.
            if answer is None:
                self.repeated = Added([], [], is_repeat=True)
                return
            checksum, ids, duplicates = codec.decode_answer(answer)
            if checksum != self._checksum and not number_decides:
                had, has = f"{len(ids)} items", str(items)
                if len(ids) == items:
                    had, has = "other contents", "these"
                raise Aborted(
                    f"producer: sequence {producer.sequence} of {producer.id!r} had {had}, and has "
                    f"{has} now; repeat the same calls, or begin a new epoch"
                )
            self.repeated = Added(ids, duplicates, is_repeat=True)

    def _answer_key(self, sequence: int) -> bytes:
        return self._key + sequence.to_bytes(8)

    def store(self, tx: Transaction[Any], added: Added) -> None:
        """Remember the answer of a new call."""
        head, producer, batch = self._head, self._producer, tx.batch
        if head is None:
            forget_at_ms = tx.now_ms + PRODUCER_KEEP_MS
            self._retention.remember(tx, forget_at_ms, self._digest, codec.FORGET_PRODUCER)
        else:
            forget_at_ms = head.forget_at_ms
            if head.epoch != producer.epoch:
                batch.delete_many(Family.PRODUCERS, _answer_keys(self._key, head.sequence))
            elif producer.sequence > PRODUCER_ANSWERS_KEPT:
                batch.delete(
                    Family.PRODUCERS, self._answer_key(producer.sequence - PRODUCER_ANSWERS_KEPT)
                )
        new_head = codec.ProducerHead(producer.epoch, producer.sequence, tx.now_ms, forget_at_ms)
        batch.put(Family.PRODUCERS, self._key, codec.encode_producer(new_head))
        answer = codec.Answer(self._checksum, list(added.ids), list(added.duplicates))
        answer_key = self._answer_key(producer.sequence)
        batch.put(Family.PRODUCERS, answer_key, codec.encode_answer(answer))


def _answer_keys(producer_key: bytes, last_sequence: int) -> list[bytes]:
    """The keys of a producer's stored answers: so few that a range deletion would cost more."""
    first = max(1, last_sequence - PRODUCER_ANSWERS_KEPT + 1)
    return [producer_key + number.to_bytes(8) for number in range(first, last_sequence + 1)]


def _checksum(contents: Sequence[bytes]) -> int:
    """Of the number of items, and of all contents one after the other, packed or not."""
    if isinstance(contents, PackedContents):
        return crc32(contents.values, len(contents))
    return reduce(lambda checksum, each: crc32(each, checksum), contents, len(contents))
