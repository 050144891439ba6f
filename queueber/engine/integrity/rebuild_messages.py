"""Rebuild the log of a topic: the newest blocks without a gap, its head, and what is kept of keys.

A topic that keeps the last message of each key has gaps anyway: of such a log every block that can
be read is kept.
"""

from collections import Counter
from dataclasses import dataclass, field

from queueber.db.families import Family
from queueber.db.records import log
from queueber.db.records.keys import prefix_end, queue_prefix, text_digest
from queueber.db.records.log import LogBlock, LogHead, encode_offset
from queueber.db.records.messages import MessageBlock
from queueber.db.records.remembered import FORGET_TOMBSTONE
from queueber.db.records.topics import TopicRecord
from queueber.db.store.contract import Store
from queueber.engine.integrity.message_logs import follows, read_messages
from queueber.engine.integrity.queue_entries import QueueEntries, QueueWrites, readable
from queueber.ids import reference, shifted

Tombstone = tuple[int, bytes, bytes]
"""When to delete it, and the reference and value of its entry in `forget`."""


@dataclass(slots=True)
class MessageLogRebuild:
    """Holds the keys of the log in memory."""

    store: Store
    record: TopicRecord
    partition: int
    lost: Counter[str]
    """Counts what cannot be kept."""
    head: LogHead = field(default_factory=LogHead)
    tombstones: list[Tombstone] = field(default_factory=list)
    _kept: list[tuple[bytes, LogBlock, bytes, int]] = field(default_factory=list)
    """Of each block its key, and the last id and sequence that it has."""
    _last_of_keys: dict[bytes, tuple[int, int]] = field(default_factory=dict)
    """By digest: offset and time of the last message; a time of 0 if it is no tombstone."""
    _replaced: list[int] = field(default_factory=list)

    @property
    def _keeps_last(self) -> bool:
        return self.record.settings.keeps_last_per_key

    def run(self) -> None:
        prefix = queue_prefix(self.record.logs[self.partition])
        writes = QueueWrites(QueueEntries(self.store, prefix))
        for family in (Family.LAST_OF_KEY, Family.REPLACED):
            writes.delete_all(family)
        for key, value in self.store.walk(Family.LOG_BLOCKS, prefix, prefix_end(prefix)):
            read = readable(read_messages, key, value)
            if read is None:
                writes.delete(Family.LOG_BLOCKS, key[len(prefix) :])
                self.lost["blocks of messages that cannot be read"] += 1
            else:
                self._keep(writes, key[len(prefix) :], *read)
        old = readable(log.decode_log_head, self.store.get(Family.LOGS, prefix) or b"")
        self.head = self._new_head(old or LogHead())
        writes.put(Family.LOGS, b"", log.encode_log_head(self.head))
        for digest, (offset, _) in self._last_of_keys.items():
            writes.put(Family.LAST_OF_KEY, digest, encode_offset(offset))
        for offset in self._replaced:
            writes.put(Family.REPLACED, encode_offset(offset), b"")
        writes.flush()
        self._find_tombstones()

    def _keep(self, writes: QueueWrites, key: bytes, block: LogBlock, found: MessageBlock) -> None:
        last_id, last_sequence = self._kept[-1][2:] if self._kept else (b"", -1)
        is_wrong = found.first_id <= last_id or found.sequence <= last_sequence
        if self._kept and (
            is_wrong or any(follows(self._kept[-1][1], block, keeps_last=self._keeps_last))
        ):
            if self._keeps_last:
                writes.delete(Family.LOG_BLOCKS, key)
                self.lost["blocks of messages that are out of order"] += 1
                return
            for old_key, old, _, _ in self._kept:
                writes.delete(Family.LOG_BLOCKS, old_key)
                self.lost["messages before a gap"] += old.end_offset - old.first_offset
            self._kept = []
        span = found.block.span
        self._kept.append(
            (key, block, shifted(found.first_id, span - 1), found.sequence + span - 1)
        )
        if self._keeps_last:
            self._read_keys(found)

    def _read_keys(self, found: MessageBlock) -> None:
        for at in found.block.positions:
            key = found.block.details(at, 1)[0][0]
            if not key:
                continue
            digest, offset = text_digest(key.decode()), found.first_offset + at
            if digest in self._last_of_keys:
                self._replaced.append(self._last_of_keys[digest][0])
            is_tombstone = not found.block.contents(at, 1)[0]
            self._last_of_keys[digest] = (offset, found.appended_at_ms if is_tombstone else 0)

    def _find_tombstones(self) -> None:
        for digest, (offset, at_ms) in self._last_of_keys.items():
            if at_ms:
                place = reference(self.partition, offset)
                own = FORGET_TOMBSTONE + place[1:]
                forget_at_ms = at_ms + self.record.settings.tombstone_ms
                self.tombstones.append((forget_at_ms, own, FORGET_TOMBSTONE + digest + place))

    def _new_head(self, old: LogHead) -> LogHead:
        if not self._kept:
            return log.head_of(None, old)
        first, last = self._kept[0][1], self._kept[-1][1]
        head = log.head_of((first, last), old)
        if not self._keeps_last:
            is_inside = first.first_offset <= old.first_offset < first.end_offset
            return head._replace(first_offset=old.first_offset) if is_inside else head
        # Messages after the last one that is left may have been replaced.
        return head._replace(
            next_offset=max(head.next_offset, old.next_offset),
            end_position=max(head.end_position, old.end_position),
        )
