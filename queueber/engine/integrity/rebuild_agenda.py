"""Write again what all topics share beside names: the agenda, the count, the last message."""

from collections.abc import Mapping

from queueber.db.families import Family
from queueber.db.records.keys import PREFIX_BYTES, queue_prefix
from queueber.db.records.topics import (
    TopicRecord,
    agenda_key,
    agenda_time_key,
    decode_group,
)
from queueber.db.store.contract import Store
from queueber.engine.integrity.message_logs import MessageLogCheck
from queueber.engine.integrity.owners import LAST_KEY
from queueber.engine.kernel.transaction import NEXT_NUMBER_KEY
from queueber.engine.topics.sequences import PUBLISHED_KEY
from queueber.engine.topics.topics import TOPICS_KEY
from queueber.limits import ID_BYTES
from queueber.model import GroupKind

_AT_ONCE_MS = 0


def rebuild_agenda(store: Store, records: Mapping[int, TopicRecord]) -> None:
    """Have every topic and group looked at once that is not on the agenda."""
    topics = {number: queue_prefix(number) for number in records}
    for key, value in store.walk(Family.GROUPS, b"", LAST_KEY):
        group = decode_group(value)
        if group.settings.kind is not GroupKind.ORDERED:
            topics[group.number] = key[:PREFIX_BYTES]
    batch = store.batch()
    for key, _ in store.walk(Family.AGENDA, b"", LAST_KEY):
        batch.delete(Family.AGENDA, key)
    for number, topic in topics.items():
        noted = store.get(Family.AGENDA, agenda_key(number)) or b""
        at_ms = int.from_bytes(noted) if len(noted) == 8 else _AT_ONCE_MS
        batch.put(Family.AGENDA, agenda_key(number), at_ms.to_bytes(8))
        batch.put(Family.AGENDA, agenda_time_key(at_ms, number), topic)
    store.write(batch)


def rebuild_default(store: Store, records: Mapping[int, TopicRecord]) -> None:
    """Correct the entries of the family `default` that are about topics."""
    published = store.get(Family.DEFAULT, PUBLISHED_KEY) or b""
    is_whole = len(published) == 8 + ID_BYTES
    sequence, last_id = 0, bytes(ID_BYTES)
    if is_whole:
        sequence, last_id = int.from_bytes(published[:8]), published[8:]
    highest = 0
    for number, record in records.items():
        highest = max([highest, number, *record.logs])
        for partition, log in enumerate(record.logs):
            check = MessageLogCheck(
                store, queue_prefix(log), keeps_last=record.settings.keeps_last_per_key
            )
            for _ in check.run(partition, ()):
                pass
            sequence, last_id = max(sequence, check.last_sequence), max(last_id, check.last_id)
    for _, value in store.walk(Family.GROUPS, b"", LAST_KEY):
        highest = max(highest, decode_group(value).number)
    batch = store.batch()
    batch.put(Family.DEFAULT, PUBLISHED_KEY, sequence.to_bytes(8) + last_id)
    count = sum(not record.is_deleted for record in records.values())
    batch.put(Family.DEFAULT, TOPICS_KEY, count.to_bytes(8))
    stored = int.from_bytes(store.get(Family.DEFAULT, NEXT_NUMBER_KEY) or b"\1")
    if stored <= highest:
        batch.put(Family.DEFAULT, NEXT_NUMBER_KEY, (highest + 1).to_bytes(4))
    store.write(batch)
