"""The check of the agenda: both its forms agree, and whatever has something to do is on it."""

from collections.abc import Iterator, Sequence

from queueber.db.families import Family
from queueber.db.records.keys import NEVER_MS, prefix_end, queue_prefix
from queueber.db.records.log import LogHead
from queueber.db.records.queues import Counters
from queueber.db.records.topics import (
    AGENDA_END,
    TopicRecord,
    agenda_key,
    agenda_time_key,
)
from queueber.db.store.contract import Store
from queueber.engine.integrity.owners import Kind, Owners
from queueber.engine.integrity.queue_entries import Violation
from queueber.engine.log import Limits, Log, trim_due_ms

_NUMBERS_END = agenda_time_key(0)[:1]


def check_agenda(store: Store, owners: Owners) -> Iterator[Violation]:
    """I18, but for what must be on the agenda: that is checked with each topic."""
    noted = 0
    for key, value in store.walk(Family.AGENDA, b"", _NUMBERS_END):
        noted += 1
        number = int.from_bytes(key[1:])
        is_whole = key == agenda_key(number) and len(value) == len(NEVER_MS.to_bytes(8))
        at = agenda_time_key(int.from_bytes(value), number) if is_whole else b""
        topic = store.get(Family.AGENDA, at)
        if topic is None or not owners.has(topic, Kind.TOPIC):
            yield _broken(number, "is noted, but not at its time, or for a topic that is gone")
        elif not owners.has(queue_prefix(number), Kind.TOPIC | Kind.SHARED | Kind.GROUP):
            yield _broken(number, "is noted, and is no topic or group")
    times = 0
    for key, _ in store.walk(Family.AGENDA, _NUMBERS_END, b"\xff" * 16):
        times += 1
        if len(key) != len(agenda_time_key(0)) or key >= AGENDA_END:
            yield Violation("I18", "-", f"agenda has the key {key.hex()}")
    if times != noted:
        yield Violation("I18", "-", f"{times} times in the agenda, but {noted} are noted")


def _broken(number: int, text: str) -> Violation:
    return Violation("I18", f"#{number}", text)


def has_duty(
    store: Store, record: TopicRecord, counters: Counters, heads: Sequence[LogHead]
) -> bool:
    """Whether the sweeper must look at a topic, now or later."""
    if record.is_deleted:
        return not record.forks
    settings = record.settings
    if settings.ttl_ms or settings.expires_at_ms or counters.forgets:
        return True
    if settings.keeps_last_per_key:
        return any(_has_replaced(store, log) for log in record.logs)
    if record.forks:
        return False
    limits = Limits(settings.retention_ms, settings.retention_bytes, settings.retention_messages)
    if settings.refuses_when_full:
        limits = Limits(settings.retention_ms)
    return any(_is_to_be_trimmed(head, limits) for head in heads)


def _has_replaced(store: Store, log: int) -> bool:
    prefix = queue_prefix(log)
    return bool(store.scan(Family.REPLACED, prefix, prefix_end(prefix), 1))


def _is_to_be_trimmed(head: LogHead, limits: Limits) -> bool:
    return trim_due_ms(Log(b"", head, {}), limits, 0) < NEVER_MS
