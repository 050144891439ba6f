"""Schedules: `ScheduleRecord` of `schema/storage.capnp`, under the queue and their name."""

from typing import NamedTuple

from queueber.db.records.blocks import pack_attributes, unpack_attributes
from queueber.db.records.item_options import decode_future_options, encode_future_options
from queueber.db.records.keys import PREFIX_BYTES, queue_prefix, split_queue_prefix
from queueber.ids import QueueId
from queueber.model import Missed, Schedule
from queueber.schema import storage

_MISSED = (Missed.ONCE, Missed.SKIP, Missed.ALL)


class ScheduleRecord(NamedTuple):
    schedule: Schedule
    created_at_ms: int
    next_at_ms: int
    """0: it is paused, or has no further time."""
    last_at_ms: int = 0
    runs: int = 0
    is_paused: bool = False


def schedule_key(queue: int, name: str) -> bytes:
    return queue_prefix(queue) + name.encode()


def split_schedule_key(key: bytes) -> tuple[QueueId, str]:
    """Raises `ValueError` if the name is no text."""
    return split_queue_prefix(key[:PREFIX_BYTES]), key[PREFIX_BYTES:].decode()


def encode_schedule(record: ScheduleRecord) -> bytes:
    schedule = record.schedule
    message = storage.ScheduleRecord.new_message(
        when=schedule.when,
        zone=schedule.zone,
        missed=_MISSED.index(schedule.missed),
        priority=schedule.priority,
        contents=schedule.contents,
        attributes=pack_attributes(schedule.attributes),
        createdAtMs=record.created_at_ms,
        nextAtMs=record.next_at_ms,
        lastAtMs=record.last_at_ms,
        runs=record.runs,
        isPaused=record.is_paused,
        options=encode_future_options(schedule.options),
    )
    encoded: bytes = message.to_bytes()
    return encoded


def decode_schedule(name: str, queue: str, value: bytes) -> ScheduleRecord:
    """Raises if a part of it is wrong, or of a later version."""
    with storage.ScheduleRecord.from_bytes(value) as r:
        schedule = Schedule(
            name,
            r.when,
            queue,
            r.contents,
            r.zone,
            _MISSED[r.missed],
            r.priority,
            unpack_attributes(r.attributes),
            decode_future_options(r.options),
        )
        return ScheduleRecord(schedule, r.createdAtMs, r.nextAtMs, r.lastAtMs, r.runs, r.isPaused)
