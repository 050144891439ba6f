"""Lost records: find out what the entries are of whose number no readable record has.

The log of a topic becomes a topic of one partition, under a new name. What is left of a group is
dropped, for nobody knows its topic. Everything else is taken for a queue, as before.
"""

from collections.abc import Iterator

from queueber.db.families import LOG_FAMILIES, Family
from queueber.db.records.keys import PREFIX_BYTES, prefix_end, queue_prefix, split_queue_prefix
from queueber.db.records.topics import (
    TopicRecord,
    decode_group,
    decode_topic,
    encode_topic,
    split_group_key,
)
from queueber.db.store.contract import Store
from queueber.engine.integrity.check_topics import is_kept
from queueber.engine.integrity.message_logs import read_messages
from queueber.engine.integrity.owners import KEY_WIDTHS, LAST_KEY, Kind, Owners, key_fits
from queueber.engine.integrity.queue_entries import readable
from queueber.engine.integrity.states import STATES
from queueber.engine.kernel.transaction import NEXT_NUMBER_KEY
from queueber.ids import split_reference
from queueber.limits import ID_BYTES, TOPIC_PARTITIONS_MAX
from queueber.model import TopicSettings

_NOT_OF_LOGS = tuple(family for family in KEY_WIDTHS if family not in LOG_FAMILIES)


def drop_odd_keys(store: Store) -> None:
    """Drop keys of a wrong length, which no read would find."""
    batch = store.batch()
    for family in KEY_WIDTHS:
        for key, _ in store.walk(family, b"", LAST_KEY):
            if not key_fits(family, key):
                batch.delete(family, key)
    store.write(batch)


def recover_topics(store: Store) -> Iterator[str]:
    """Have every record of topics and groups be readable, and every log belong to a topic. Yields a
    sentence for each loss."""
    yield from _drop_unreadable(store)
    _give_logs_numbers(store)
    yield from _recover_orphans(store)
    yield from _drop_groups_of_nobody(store)
    yield from _recover_orphans(store)  # what those groups had


def _recover_orphans(store: Store) -> Iterator[str]:
    owners = Owners(store)
    for prefix in _orphans(store, owners):
        number = split_queue_prefix(prefix)
        if _is_group(store, prefix):
            _drop(store, prefix)
            yield f"#{number}: what consumers of a group worked on: its record was lost"
        elif _is_log(store, prefix):
            keeps_last = bool(store.scan(Family.LAST_OF_KEY, prefix, prefix_end(prefix), 1))
            settings = TopicSettings(keeps_last_per_key=keeps_last)
            record = TopicRecord(f"recovered-{number}", 0, (number,), settings)
            batch = store.batch()
            batch.put(Family.TOPICS, prefix, encode_topic(record))
            store.write(batch)
            yield f"topic {record.name!r}: the record of log {number} was lost, name and settings"
        elif not any(store.scan(each, prefix, prefix_end(prefix), 1) for each in _NOT_OF_LOGS):
            _drop(store, prefix)
            yield f"#{number}: a log without messages: its record was lost"


def _drop_unreadable(store: Store) -> Iterator[str]:
    batch = store.batch()
    for prefix, value in store.walk(Family.TOPICS, b"", LAST_KEY):
        if readable(decode_topic, value) is None:
            batch.delete(Family.TOPICS, prefix)
            yield f"topic #{split_queue_prefix(prefix)}: its record, with name and settings"
    for key, value in store.walk(Family.GROUPS, b"", LAST_KEY):
        if readable(decode_group, value) is None or readable(split_group_key, key) is None:
            batch.delete(Family.GROUPS, key)
            yield f"group {key[PREFIX_BYTES:]!r}: its record"
    store.write(batch)


def _drop_groups_of_nobody(store: Store) -> Iterator[str]:
    """Groups whose topic is gone, or whose number another has."""
    topics = {prefix for prefix, _ in store.walk(Family.TOPICS, b"", LAST_KEY)}
    taken = {prefix for prefix, _ in store.walk(Family.QUEUES, b"", LAST_KEY)} | topics
    for _, value in store.walk(Family.TOPICS, b"", LAST_KEY):
        taken |= {queue_prefix(log) for log in decode_topic(value).logs}
    batch = store.batch()
    for key, value in store.walk(Family.GROUPS, b"", LAST_KEY):
        number = queue_prefix(decode_group(value).number)
        if key[:PREFIX_BYTES] not in topics or number in taken:
            batch.delete(Family.GROUPS, key)
            yield f"group {key[PREFIX_BYTES:]!r}: its topic, or its number"
        taken.add(number)
    store.write(batch)


def _give_logs_numbers(store: Store) -> None:
    """A log that is that of another gets a number of its own, and is empty."""
    taken = {prefix for prefix, _ in store.walk(Family.QUEUES, b"", LAST_KEY)}
    topics = {prefix for prefix, _ in store.walk(Family.TOPICS, b"", LAST_KEY)}
    unused = int.from_bytes(store.get(Family.DEFAULT, NEXT_NUMBER_KEY) or b"\1")
    for _, value in store.walk(Family.GROUPS, b"", LAST_KEY):
        unused = max(unused, decode_group(value).number + 1)
    for _, value in store.walk(Family.TOPICS, b"", LAST_KEY):
        unused = max([unused, *(log + 1 for log in decode_topic(value).logs)])
    batch = store.batch()
    for prefix, value in store.walk(Family.TOPICS, b"", LAST_KEY):
        record = decode_topic(value)
        logs: list[int] = []
        for log in record.logs[:TOPIC_PARTITIONS_MAX] or ([0] if is_kept(record) else []):
            own = queue_prefix(log)
            if not log or own in taken or (own in topics and own != prefix):
                own, unused = queue_prefix(unused), unused + 1
            taken.add(own)
            logs.append(split_queue_prefix(own))
        if tuple(logs) != record.logs:
            batch.put(Family.TOPICS, prefix, encode_topic(record._replace(logs=tuple(logs))))
    batch.put(Family.DEFAULT, NEXT_NUMBER_KEY, unused.to_bytes(4))
    store.write(batch)


def _orphans(store: Store, owners: Owners) -> list[bytes]:
    """The numbers of entries whose families no record allows."""
    found = set()
    for family in KEY_WIDTHS:
        start = b""
        while entries := store.scan(family, start, LAST_KEY, 1):
            prefix = entries[0][0][:PREFIX_BYTES]
            if not owners.has(prefix, ~Kind(0)):
                found.add(prefix)
            elif not owners.may_have(prefix, family):
                _drop_of(store, family, prefix)
            start = prefix_end(prefix)
    return sorted(found)


def _drop_of(store: Store, family: Family, prefix: bytes) -> None:
    batch = store.batch()
    batch.delete_range(family, prefix, prefix_end(prefix))
    store.write(batch)


def _drop(store: Store, prefix: bytes) -> None:
    for family in KEY_WIDTHS:
        _drop_of(store, family, prefix)


def _is_group(store: Store, prefix: bytes) -> bool:
    """Whether it has positions, or entries of messages instead of items."""
    stop = prefix_end(prefix)
    if store.scan(Family.POSITIONS, prefix, stop, 1):
        return True
    if store.scan(Family.ITEMS, prefix, stop, 1):
        return False
    families = [family for family in (*STATES, Family.PLACES) if family is not Family.LEASES]
    found = [entry for family in families for entry in store.scan(family, prefix, stop, 1)]
    return any(readable(split_reference, key[-ID_BYTES:]) is not None for key, _ in found)


def _is_log(store: Store, prefix: bytes) -> bool:
    """Whether one of its blocks has messages, or it has keys."""
    stop = prefix_end(prefix)
    if any(store.scan(each, prefix, stop, 1) for each in (Family.LAST_OF_KEY, Family.REPLACED)):
        return True
    blocks = store.scan(Family.LOG_BLOCKS, prefix, stop, 10)
    return any(readable(read_messages, *each) is not None for each in blocks)
