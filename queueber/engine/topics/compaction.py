"""Compaction: a topic that keeps the last message of each key.

`last_of_key` has the offset of the last message of each key. A message that a later one replaces is
noted in `replaced`, and leaves its block within `COMPACT_AFTER_MS`: the block is rewritten without
all of its messages that were replaced by then, and deleted with the last of them. So a reader from
the start gets few messages that are not the last of their key. Offsets are never used again: those
of replaced messages are missing from then on.

A message without a payload is a tombstone. It replaces the message before it as any other does, and
is itself deleted `tombstone_ms` later, unless a message with its key has come meanwhile.
"""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

from queueber.db.families import Family
from queueber.db.records.keys import (
    DIGEST_BYTES,
    NEVER_MS,
    PREFIX_BYTES,
    prefix_end,
    text_digest,
)
from queueber.db.records.log import block_key, decode_offset, encode_offset
from queueber.db.records.messages import contents_of, with_contents
from queueber.db.records.remembered import FORGET_TOMBSTONE
from queueber.db.store.contract import Store
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.log import Log, block_at
from queueber.engine.records.retention import Retention
from queueber.ids import reference, split_reference
from queueber.limits import COMPACT_AFTER_MS
from queueber.model import NewMessages

LogOf = Callable[[int], Log]
"""The log of a partition."""


class Compaction:
    """What a topic that keeps the last message of each key has to do."""

    __slots__ = ("_log_of", "_retention", "_store", "due_ms")

    def __init__(self, store: Store, retention: Retention, log_of: LogOf, partitions: int) -> None:
        self._store = store
        self._retention = retention
        self._log_of = log_of
        has_replaced = any(self._replaced(each, 1) for each in range(partitions))
        self.due_ms = 0 if has_replaced else NEVER_MS
        """When replaced messages are to leave their blocks."""
        retention.register(FORGET_TOMBSTONE, self._forget_tombstone)

    def replace(
        self,
        tx: Transaction[Any],
        partition: int,
        messages: NewMessages,
        first_offset: int,
        tombstone_ms: int,
    ) -> None:
        """These messages are appended: those before them with the same keys are to go.

        `tx` is that of the topic.
        """
        prefix = self._log_of(partition).prefix
        last = self._last_of(tx, prefix, messages.keys)
        changed: dict[bytes, int] = {}
        replaced: list[int] = []
        for offset, key in enumerate(messages.keys, first_offset):
            if key:
                digest = text_digest(key)
                if (before := last.get(digest)) is not None:
                    replaced.append(before)
                changed[digest] = last[digest] = offset
                if not messages.payloads[offset - first_offset]:
                    named = digest + reference(partition, offset)
                    forget_at_ms = tx.now_ms + tombstone_ms
                    # Not the reference itself: the entry of a dedup id may have that and the time.
                    own = FORGET_TOMBSTONE + reference(partition, offset)[1:]
                    self._retention.remember(tx, forget_at_ms, own, FORGET_TOMBSTONE, named)
        keys = [prefix + digest for digest in changed]
        tx.batch.put_columns(
            Family.LAST_OF_KEY, keys, [encode_offset(each) for each in changed.values()]
        )
        self._mark(tx, prefix, replaced)

    def _last_of(
        self, tx: Transaction[Any], prefix: bytes, keys: Sequence[str]
    ) -> dict[bytes, int]:
        """The last offset of each key, with the changes of this transaction so far."""
        last: dict[bytes, int] = tx.pending.setdefault((self, prefix), {})
        digests = {text_digest(key) for key in keys if key} - last.keys()
        wanted = sorted(digests)
        found = self._store.get_many(Family.LAST_OF_KEY, [prefix + each for each in wanted])
        for digest, value in zip(wanted, found, strict=True):
            if value is not None:
                last[digest] = decode_offset(value)
        return last

    def _mark(self, tx: Transaction[Any], prefix: bytes, offsets: Sequence[int]) -> None:
        if offsets:
            keys = [prefix + encode_offset(each) for each in offsets]
            tx.batch.put_columns(Family.REPLACED, keys, [b""] * len(keys))
            due_ms = tx.now_ms + COMPACT_AFTER_MS
            tx.due(due_ms)
            tx.after_write(self._is_due, due_ms)

    def _is_due(self, at_ms: int) -> None:
        self.due_ms = min(self.due_ms, at_ms)

    def _forget_tombstone(self, tx: Transaction[Any], at_ms: int, named: bytes) -> None:
        digest = named[:DIGEST_BYTES]
        partition, offset = split_reference(named[DIGEST_BYTES:])
        prefix = self._log_of(partition).prefix
        last = self._store.get(Family.LAST_OF_KEY, prefix + digest)
        if last is not None and decode_offset(last) == offset:
            tx.batch.delete(Family.LAST_OF_KEY, prefix + digest)
            self._mark(tx, prefix, [offset])

    # --- in the background ------------------------------------------------------------------------

    def _replaced(self, partition: int, limit: int) -> list[int]:
        prefix = self._log_of(partition).prefix
        found = self._store.scan(Family.REPLACED, prefix, prefix_end(prefix), limit)
        return [decode_offset(key[PREFIX_BYTES:]) for key, _ in found]

    def compact(self, tx: Transaction[Any], partitions: int, messages_max: int) -> int:
        """Delete up to `messages_max` replaced messages; returns how many."""
        done = 0
        for partition in range(partitions):
            offsets = self._replaced(partition, messages_max - done)
            self._delete(tx, self._log_of(partition), offsets)
            done += len(offsets)
            if done == messages_max:
                return done
        tx.after_write(setattr, self, "due_ms", NEVER_MS)
        return done

    def _delete(self, tx: Transaction[Any], log: Log, offsets: Sequence[int]) -> None:
        blocks = {each: block_at(tx.store, log.prefix, each) for each in offsets}
        for last, of_block in groupby(offsets, key=lambda each: blocks[each].end_offset - 1):
            gone = list(of_block)
            found = blocks[gone[0]]
            contents = contents_of(found.value)
            positions = {each - found.first_offset for each in gone}
            left = [each for each in contents.positions if each not in positions]
            key = block_key(log.prefix, last)
            if left:
                value = with_contents(found.value, contents.rewritten(left))
                tx.batch.put(Family.LOG_BLOCKS, key, value)
            else:
                tx.batch.delete(Family.LOG_BLOCKS, key)
        tx.batch.delete_many(
            Family.REPLACED, [log.prefix + encode_offset(each) for each in offsets]
        )
