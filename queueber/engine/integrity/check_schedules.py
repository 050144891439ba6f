"""The check of schedules: names, expressions and next times; and their repair."""

from collections.abc import Iterator

from queueber.cron import parse_when, to_zone
from queueber.db.families import Family
from queueber.db.records.keys import PREFIX_BYTES, split_queue_prefix
from queueber.db.records.queues import decode_queue
from queueber.db.records.schedules import ScheduleRecord, decode_schedule, split_schedule_key
from queueber.db.store.contract import Store
from queueber.engine.integrity.owners import LAST_KEY
from queueber.engine.integrity.queue_entries import Violation, readable
from queueber.errors import QueueberError


def check_schedules(store: Store) -> Iterator[Violation]:
    """I21. The memory that this takes grows with the number of schedules."""
    for key, record, queue, wrong in _wrong(store):
        if record is None:
            yield Violation("I7", queue, f"the schedule {key.hex()} cannot be read")
        elif wrong:
            yield Violation("I21", queue, f"schedule {record.schedule.name!r} {wrong}")


def rebuild_schedules(store: Store) -> Iterator[str]:
    """Delete schedules that break the rule. Yields a sentence for each."""
    batch = store.batch()
    for key, record, queue, wrong in _wrong(store):
        if record is None or wrong:
            batch.delete(Family.SCHEDULES, key)
            name = "" if record is None else f" {record.schedule.name!r}"
            yield f"{queue}: the schedule{name}"
    store.write(batch)


def _wrong(store: Store) -> Iterator[tuple[bytes, ScheduleRecord | None, str, str]]:
    """Every schedule of a queue that there is: its key, record and queue, and what is wrong."""
    names: set[str] = set()
    for key, value in store.walk(Family.SCHEDULES, b"", LAST_KEY):
        prefix = key[:PREFIX_BYTES]
        if len(key) <= PREFIX_BYTES or store.get(Family.QUEUES, prefix) is None:
            continue  # that breaks another rule
        queue = _queue_name(store, prefix)
        record = readable(_read, key, queue, value)
        wrong = ""
        if record is not None:
            name = record.schedule.name
            wrong = "has the name of another" if name in names else _wrong_times(record)
            names.add(name)
        yield key, record, queue, wrong


def _wrong_times(record: ScheduleRecord) -> str:
    if record.is_paused and record.next_at_ms:
        return "is paused, but has a next time"
    if record.next_at_ms and record.next_at_ms <= record.last_at_ms:
        return f"has its next time at {record.next_at_ms}, and ran at {record.last_at_ms}"
    return ""


def _read(key: bytes, queue: str, value: bytes) -> ScheduleRecord:
    """Raises if a part of it is wrong."""
    record = decode_schedule(split_schedule_key(key)[1], queue, value)
    try:
        parse_when(record.schedule.when)
        to_zone(record.schedule.zone)
    except QueueberError as error:
        raise ValueError(str(error)) from error
    return record


def _queue_name(store: Store, prefix: bytes) -> str:
    """What violations and losses call a queue."""
    stored = store.get(Family.QUEUES, prefix)
    queue = None if stored is None else readable(decode_queue, stored)
    return f"#{split_queue_prefix(prefix)}" if queue is None else queue[0]
