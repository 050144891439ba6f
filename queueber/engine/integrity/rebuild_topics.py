"""Rebuild topics in which some entries are missing or broken, so that every rule holds again.

The records of topics that can be read are kept, and the logs of those that cannot become topics of
one partition. Of a broken topic the newest messages without a gap are kept. What all topics share
is then written again from their records: forks, names, the agenda, the last sequence.
"""

from collections import Counter
from collections.abc import Collection, Iterator

from queueber.db.families import Family
from queueber.db.records.keys import queue_prefix, split_queue_prefix
from queueber.db.records.log import LogHead, decode_log_head
from queueber.db.records.queues import Counters, decode_counters, encode_counters
from queueber.db.records.topics import Inherited, TopicRecord, decode_topic, encode_topic
from queueber.db.store.contract import Store
from queueber.engine.integrity.check_routes import rebuild_routes
from queueber.engine.integrity.check_schemas import rebuild_schemas
from queueber.engine.integrity.check_topics import is_kept, origin_of, topic_name
from queueber.engine.integrity.owners import LAST_KEY
from queueber.engine.integrity.queue_entries import QueueEntries, readable
from queueber.engine.integrity.rebuild_groups import rebuild_groups
from queueber.engine.integrity.rebuild_messages import MessageLogRebuild
from queueber.engine.integrity.records import RecordsRebuild


class TopicsRebuild:
    """Holds the records of all topics in memory."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.records: dict[int, TopicRecord] = {
            split_queue_prefix(prefix): decode_topic(value)
            for prefix, value in store.walk(Family.TOPICS, b"", LAST_KEY)
        }

    def run(self, broken: Collection[str]) -> Iterator[str]:
        """Yields a sentence for each kind of loss in each topic. Every record can be read."""
        is_everything = "-" in broken or any(each.startswith("#") for each in broken)
        for number, record in self.records.items():
            name = topic_name(record, number)
            if is_everything or name in broken:
                for what, count in self._rebuild(number, record).items():
                    yield f"{name}: {count} {what}"
                end = self._head(record.logs[0]).next_offset if len(record.logs) == 1 else 0
                self.records[number] = rebuild_schemas(self._store, number, record, end)
        yield from self._rebuild_sharing()
        yield from self._rebuild_names()
        yield from rebuild_routes(self._store, self.records)
        batch = self._store.batch()
        for number, record in self.records.items():
            batch.put(Family.TOPICS, queue_prefix(number), encode_topic(record))
        self._store.write(batch)

    def _rebuild(self, number: int, record: TopicRecord) -> Counter[str]:
        store, prefix = self._store, queue_prefix(number)
        lost: Counter[str] = Counter()
        logs = [MessageLogRebuild(store, record, each, lost) for each in range(len(record.logs))]
        for each in logs:
            each.run()
        rebuild_groups(store, number, record, [each.head for each in logs], lost)
        old = readable(decode_counters, store.get(Family.COUNTERS, prefix) or b"") or Counters()
        counters = Counters(duplicates_total=old.duplicates_total)
        records = RecordsRebuild(QueueEntries(store, prefix), lost)
        records.run(counters, {}, [entry for each in logs for entry in each.tombstones])
        batch = store.batch()
        batch.put(Family.COUNTERS, prefix, encode_counters(counters))
        store.write(batch)
        return lost

    # --- forks ------------------------------------------------------------------------------------

    def _head(self, log: int) -> LogHead:
        stored = self._store.get(Family.LOGS, queue_prefix(log))
        return LogHead() if stored is None else decode_log_head(stored)

    def _rebuild_sharing(self) -> Iterator[str]:
        logs = {log for record in self.records.values() for log in record.logs}
        for number, record in self.records.items():
            shared = tuple(self._still_shared(record, logs))
            if shared != record.inherited and is_kept(record):
                before = sum(each.end - each.first for each in record.inherited)
                left = sum(each.end - each.first for each in shared)
                yield f"{topic_name(record, number)}: {before - left} messages that it shared"
            parent = record.parent if record.parent in self.records else 0
            self.records[number] = record._replace(inherited=shared, parent=parent)
        for number in sorted(self.records):  # a topic has a greater number than its parent
            self._rebuild_beginning(number)
        while self._count_forks():
            pass

    def _rebuild_beginning(self, number: int) -> None:
        """A fork has the origin of its parent. One that lost messages began where it ends, at the
        latest."""
        record = self.records[number]
        if record.parent and record.origin:
            known = origin_of(record.parent, self.records[record.parent])
            record = record._replace(origin=known or record.origin)
        end = self._head(record.logs[0]).next_offset if len(record.logs) == 1 else None
        if end is not None and end < record.fork_offset + bool(record.cut_bytes):
            record = record._replace(fork_offset=min(record.fork_offset, end), cut_bytes=0)
        self.records[number] = record

    def _still_shared(self, record: TopicRecord, logs: Collection[int]) -> list[Inherited]:
        """The newest shared messages without a gap up to the topic's own."""
        kept: list[Inherited] = []
        for partition, log in enumerate(record.logs):
            end, of_partition = self._head(log).first_offset, []
            shared = [each for each in record.inherited if each.partition == partition]
            for each in reversed(shared):
                head = self._head(each.log)
                first = max(each.first, head.first_offset)
                if each.end != end or each.log not in logs or not first < end <= head.next_offset:
                    break
                of_partition.append(each._replace(first=first))
                end = first
                if first != each.first:
                    break
            kept += reversed(of_partition)
        return kept

    def _count_forks(self) -> bool:
        """Whether the number of forks changes for some topic: then its parent's may, too."""
        found = Counter(each.parent for each in self.records.values() if is_kept(each))
        changed = False
        for number, record in self.records.items():
            if record.forks != found[number]:
                self.records[number] = record._replace(forks=found[number])
                changed = True
        return changed

    # --- names ------------------------------------------------------------------------------------

    def _rebuild_names(self) -> Iterator[str]:
        names: dict[str, int] = {}
        for number, record in self.records.items():
            if not is_kept(record):
                continue
            name = record.name
            if not name or name in names:
                name = f"recovered-{number}"
                yield f"{topic_name(record, number)}: another topic has the name; now {name!r}"
            names[name] = number
            self.records[number] = record._replace(name=name)
        for number, record in self.records.items():
            if not record.alias or not is_kept(record):
                continue
            if names.setdefault(record.alias, number) != number:
                yield f"{topic_name(record, number)}: the alias {record.alias!r}"
                self.records[number] = record._replace(alias="")
        batch = self._store.batch()
        for key, _ in self._store.walk(Family.TOPIC_NAMES, b"", LAST_KEY):
            batch.delete(Family.TOPIC_NAMES, key)
        for name, number in names.items():
            batch.put(Family.TOPIC_NAMES, name.encode(), queue_prefix(number))
        self._store.write(batch)
