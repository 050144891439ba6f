"""Compaction: a topic that keeps the last message of each key.

`last_of_key` has the offset of the last message of each key. A message that is replaced by a later
one leaves its block in the same write: the block is rewritten without it, and deleted with the last
of its messages. So a reader from the start gets each key once. Offsets are never used again: those
of replaced messages are missing from then on.

A message without a payload is a tombstone. It replaces the messages before it as any other does,
and is itself forgotten `tombstone_ms` later, unless a message with its key has come meanwhile.
"""

from collections.abc import Sequence
from typing import Any

from queueber.db.families import Family
from queueber.db.records.blocks import positions_of
from queueber.db.records.keys import text_digest
from queueber.db.records.log import block_key, decode_offset, encode_offset
from queueber.db.records.messages import contents_of, with_contents
from queueber.db.store.contract import Store
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.log import Log, block_at
from queueber.model import NewMessages, TopicSettings


class Compaction:
    __slots__ = ("_store",)

    def __init__(self, store: Store, settings: TopicSettings) -> None:
        self._store = store

    def replace(
        self, tx: Transaction[Any], log: Log, messages: NewMessages, first_offset: int
    ) -> None:
        """These messages are appended: those before them with the same keys go."""
        raise NotImplementedError
