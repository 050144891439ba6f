"""The check of topics: their logs, names and forks, and the records that all of them share."""

from collections import Counter
from collections.abc import Iterator

from queueber.db.families import Family
from queueber.db.records.keys import DIGEST_BYTES, queue_prefix, split_queue_prefix
from queueber.db.records.log import LogHead, decode_log_head
from queueber.db.records.queues import Counters, decode_counters
from queueber.db.records.remembered import FORGET_TOMBSTONE
from queueber.db.records.topics import TopicRecord, agenda_key, decode_topic
from queueber.db.store.contract import Store
from queueber.engine.integrity.check_agenda import check_agenda, has_duty
from queueber.engine.integrity.check_groups import GroupsCheck
from queueber.engine.integrity.check_schemas import check_schemas
from queueber.engine.integrity.message_logs import MessageLogCheck
from queueber.engine.integrity.owners import LAST_KEY, Kind, Owners
from queueber.engine.integrity.queue_entries import CheckedQueue, QueueEntries, Violation, readable
from queueber.engine.integrity.records import RecordsCheck
from queueber.engine.kernel.transaction import NEXT_NUMBER_KEY
from queueber.engine.topics.sequences import PUBLISHED_KEY
from queueber.engine.topics.topics import TOPICS_KEY
from queueber.limits import ID_BYTES, TOPIC_PARTITIONS_MAX


def topic_name(record: TopicRecord | None, number: int) -> str:
    """What violations and losses call a topic."""
    return f"topic #{number}" if record is None else f"topic {record.name!r}"


def origin_of(number: int, record: TopicRecord) -> int:
    """The origin of a topic; 0: it is a fork that an older version made, and is not known here."""
    return record.origin or (0 if record.parent else number)


def is_kept(record: TopicRecord) -> bool:
    """Whether it is there for somebody, be it only for its forks."""
    return bool(not record.is_deleted or record.forks)


class TopicsCheck:
    def __init__(self, store: Store, owners: Owners) -> None:
        self._store = store
        self._owners = owners
        self._count = 0
        self._forks: Counter[int] = Counter()
        """By topic: how many its record counts, less those that were found."""
        self._last_id = bytes(ID_BYTES)
        self._last_sequence = 0

    def run(self) -> Iterator[Violation]:
        for prefix, value in self._store.walk(Family.TOPICS, b"", LAST_KEY):
            number = split_queue_prefix(prefix)
            record = readable(decode_topic, value)
            name = topic_name(record, number)
            if record is None:
                yield Violation("I7", name, "its record cannot be read")
                continue
            try:
                yield from self._check_topic(number, name, record)
            except Exception as error:  # noqa: BLE001  damage raises all kinds
                yield Violation("I7", name, f"a value cannot be read: {error!r}")
        for parent, more in self._forks.items():
            if more:
                text = f"counts {abs(more)} forks too {'many' if more > 0 else 'few'}"
                yield Violation("I15", self._name(parent), text)
        yield from self._check_names()
        yield from self._check_default()
        yield from check_agenda(self._store, self._owners)

    def _name(self, number: int) -> str:
        stored = self._store.get(Family.TOPICS, queue_prefix(number))
        return topic_name(None if stored is None else readable(decode_topic, stored), number)

    # --- one topic --------------------------------------------------------------------------------

    def _check_topic(self, number: int, name: str, record: TopicRecord) -> Iterator[Violation]:
        self._count += not record.is_deleted
        if record.forks:
            self._forks[number] += record.forks
        if is_kept(record):
            yield from self._check_sharing(name, record)
            if not 1 <= len(record.logs) <= TOPIC_PARTITIONS_MAX:
                yield Violation("I15", name, f"has {len(record.logs)} partitions")
        prefix = queue_prefix(number)
        stored = self._store.get(Family.COUNTERS, prefix)
        counters = Counters() if stored is None else decode_counters(stored)
        queue = CheckedQueue(name, QueueEntries(self._store, prefix), counters)
        yield from RecordsCheck(queue, has_tombstones=True).run({})
        yield from _check_counters(queue)
        heads = []
        tombstones = _tombstones(queue.entries)
        for partition, log in enumerate(record.logs):
            check = MessageLogCheck(
                self._store, queue_prefix(log), keeps_last=record.settings.keeps_last_per_key
            )
            for rule, text in check.run(partition, tombstones):
                yield Violation(rule, name, f"partition {partition}: {text}")
            heads.append(check.head)
            self._last_id = max(self._last_id, check.last_id)
            self._last_sequence = max(self._last_sequence, check.last_sequence)
        for text in check_schemas(self._store, number, record, heads):
            yield Violation("I15", name, text)
        groups = GroupsCheck(self._store, name, number, record, heads)
        yield from groups.run()
        is_bridging = groups.has_to_move and not record.is_deleted
        if is_bridging or has_duty(self._store, record, counters, heads):
            yield from self._expect_noted(name, number)

    def _expect_noted(self, name: str, number: int) -> Iterator[Violation]:
        if self._store.get(Family.AGENDA, agenda_key(number)) is None:
            yield Violation("I18", name, "has something to do, and no noted time")

    def _check_sharing(self, name: str, record: TopicRecord) -> Iterator[Violation]:
        """Its parent exists, and so do the messages that it shares; there is no gap between them
        and its own."""
        if record.parent:
            self._forks[record.parent] -= 1
            if not self._owners.has(queue_prefix(record.parent), Kind.TOPIC):
                yield Violation("I15", name, f"its parent {record.parent} does not exist")
            yield from self._check_beginning(name, record)
        ends: dict[int, int] = {}
        for each in record.inherited:
            end = ends.get(each.partition, each.first)
            if each.partition >= len(record.logs) or not each.first < each.end or each.first != end:
                yield Violation("I15", name, f"cannot share {each}")
            ends[each.partition] = each.end
            head = self._head(each.log)
            if not self._owners.has(queue_prefix(each.log), Kind.LOG) or not (
                head.first_offset <= each.first and each.end <= head.next_offset
            ):
                yield Violation("I15", name, f"shares {each}, which do not exist")
        for partition, end in ends.items():
            own = self._head(record.logs[partition]).first_offset
            if end != own:
                text = f"partition {partition} shares messages up to {end}, its own begin at {own}"
                yield Violation("I15", name, text)

    def _check_beginning(self, name: str, record: TopicRecord) -> Iterator[Violation]:
        """A fork has the origin of its parent, and reaches past the place where it began."""
        stored = self._store.get(Family.TOPICS, queue_prefix(record.parent))
        parent = None if stored is None else readable(decode_topic, stored)
        if record.origin and parent is not None:
            origin = origin_of(record.parent, parent)
            if origin not in (0, record.origin):
                yield Violation("I15", name, f"has origin {record.origin}, its parent {origin}")
        if len(record.logs) != 1:
            return  # where it began is not known of each partition
        end = self._head(record.logs[0]).next_offset
        if end < record.fork_offset + bool(record.cut_bytes):
            yield Violation("I15", name, f"began at {record.fork_offset}, but ends at {end}")

    def _head(self, log: int) -> LogHead:
        stored = self._store.get(Family.LOGS, queue_prefix(log))
        return LogHead() if stored is None else readable(decode_log_head, stored) or LogHead()

    # --- what all topics share --------------------------------------------------------------------

    def _check_names(self) -> Iterator[Violation]:
        names = 0
        for key, value in self._store.walk(Family.TOPIC_NAMES, b"", LAST_KEY):
            names += 1
            stored = self._store.get(Family.TOPICS, value)
            record = None if stored is None else readable(decode_topic, stored)
            if (
                record is None
                or not is_kept(record)
                or key not in (record.name.encode(), record.alias.encode())
            ):
                yield Violation("I16", f"topic {key!r}", "the name leads to no topic that has it")
        wanted = 0
        for prefix, value in self._store.walk(Family.TOPICS, b"", LAST_KEY):
            record = readable(decode_topic, value)
            if record is None or not is_kept(record):
                continue
            for name in {record.name, record.alias} - {""}:
                wanted += 1
                if self._store.get(Family.TOPIC_NAMES, name.encode()) != prefix:
                    text = f"the name {name!r} does not lead to it"
                    yield Violation("I16", topic_name(record, 0), text)
        if names != wanted:
            yield Violation("I16", "-", f"{names} names, but {wanted} of topics")

    def _check_default(self) -> Iterator[Violation]:
        counted = int.from_bytes(self._store.get(Family.DEFAULT, TOPICS_KEY) or b"")
        if counted != self._count:
            yield Violation("I16", "-", f"{self._count} topics, but {counted} counted")
        published = self._store.get(Family.DEFAULT, PUBLISHED_KEY) or bytes(8 + ID_BYTES)
        sequence, last_id = int.from_bytes(published[:8]), published[8:]
        if len(last_id) != ID_BYTES or sequence < self._last_sequence or last_id < self._last_id:
            text = f"the last message is {self._last_sequence}, but {sequence} is the last known"
            yield Violation("I19", "-", text)
        next_number = self._store.get(Family.DEFAULT, NEXT_NUMBER_KEY) or b"\1"
        if int.from_bytes(next_number) <= self._owners.highest:
            yield Violation("I17", "-", f"number {self._owners.highest} would be used again")


def _check_counters(topic: CheckedQueue) -> Iterator[Violation]:
    """A topic has no items: its counters are about what it remembers."""
    kept = topic.counters
    expected = Counters(
        forgets=kept.forgets,
        forget_due_ms=kept.forget_due_ms,
        duplicates_total=kept.duplicates_total,
    )
    # Times to look next are lower bounds. A record from before a counter was added has 0 there.
    if not expected.differs_in_low_marks_only(kept):
        yield topic.broken("I5", f"a topic has the counters {kept}")


def _tombstones(entries: QueueEntries) -> set[bytes]:
    """The references of tombstones that an entry in `forget` deletes."""
    return {
        value[1 + DIGEST_BYTES :]
        for _, value in entries.walk(Family.FORGET)
        if value[:1] == FORGET_TOMBSTONE
    }
