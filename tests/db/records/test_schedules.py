"""The bytes of schedules."""

import pytest

from queueber.db.records.schedules import (
    ScheduleRecord,
    decode_schedule,
    encode_schedule,
    schedule_key,
    split_schedule_key,
)
from queueber.model import NO_OPTIONS, ItemOptions, Missed, Schedule
from queueber.schema import storage


def test_key_has_queue_and_name() -> None:
    key = schedule_key(7, "nightly.v2")

    assert key == b"\0\0\0\7nightly.v2"
    assert split_schedule_key(key) == (7, "nightly.v2")


@pytest.mark.parametrize("missed", Missed)
def test_record_is_read_as_it_was_written(missed: Missed) -> None:
    schedule = Schedule("n", "0 3 * * *", "q", b"\0x", "Asia/Tokyo", missed, 9, {"a": "", "ö": "b"})
    record = ScheduleRecord(schedule, 1, 2**40, 3, 4, is_paused=True)

    assert decode_schedule("n", "q", encode_schedule(record)) == record


def test_record_of_a_later_version_is_not_read() -> None:
    later = storage.ScheduleRecord.new_message(missed=3).to_bytes()

    with pytest.raises(IndexError):
        decode_schedule("n", "q", later)


def test_what_items_have_of_their_own_is_kept_and_may_be_missing() -> None:
    schedule = Schedule("n", "@daily", "q", options=ItemOptions(0, (1, 2**40), 3, 4))
    earlier = storage.ScheduleRecord.new_message(when="@daily", zone="UTC").to_bytes()

    assert decode_schedule("n", "q", encode_schedule(ScheduleRecord(schedule, 1, 2))) == (
        schedule, 1, 2, 0, 0, False
    )  # fmt: skip
    assert decode_schedule("n", "q", earlier).schedule.options == NO_OPTIONS
