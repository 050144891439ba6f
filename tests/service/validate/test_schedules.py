"""What a schedule may say."""

from dataclasses import replace
from typing import Any

import pytest

from queueber.errors import InvalidArgument, QueueberError, ResourceExhausted
from queueber.limits import ATTRIBUTES_MAX, SCHEDULE_BYTES_MAX, SCHEDULE_NAME_CHARS_MAX
from queueber.model import ItemOptions, Schedule
from queueber.service.validate.schedules import check_schedule

GOOD = Schedule("a.b-c_1", "0 3 * * *", "q", b"x", "Europe/Berlin", attributes={"a": "b"})


def test_a_good_one_passes() -> None:
    check_schedule(GOOD, 100)
    check_schedule(replace(GOOD, name="n" * SCHEDULE_NAME_CHARS_MAX), 100)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"name": ""}, InvalidArgument, "name: '' is not the name of a schedule; use 1 to 128"),
        ({"name": "n" * (SCHEDULE_NAME_CHARS_MAX + 1)}, InvalidArgument, "is not the name"),
        ({"name": "ü"}, InvalidArgument, "is not the name of a schedule"),
        ({"queue": "a/b"}, InvalidArgument, "queue: 'a/b' is not a queue name"),
        ({"when": "soon"}, InvalidArgument, "when: 'soon' is no schedule"),
        ({"zone": "Mars"}, InvalidArgument, "zone: 'Mars' is no time zone"),
        ({"priority": 10}, InvalidArgument, "priority: 10 is too high; it must be 0 to 9"),
        ({"attributes": {"": "x"}}, InvalidArgument, "attributes: one has an empty name"),
        (
            {"attributes": {str(each): "" for each in range(ATTRIBUTES_MAX - 1)}},
            InvalidArgument,
            "attributes: there are 31; the limit for a schedule is 30",
        ),
        ({"options": ItemOptions(-1)}, InvalidArgument, "options.attemptsMax: -1"),
        ({"contents": b"x" * 100}, ResourceExhausted, "have 102 bytes; the limit .* is 100"),
    ],
)
def test_what_is_wrong_is_told(
    change: dict[str, Any], error: type[QueueberError], words: str
) -> None:
    with pytest.raises(error, match=words):
        check_schedule(replace(GOOD, **change), 100)


def test_contents_have_a_limit_of_their_own() -> None:
    with pytest.raises(
        ResourceExhausted, match=f"the limit for a schedule is {SCHEDULE_BYTES_MAX}"
    ):
        check_schedule(replace(GOOD, contents=bytes(SCHEDULE_BYTES_MAX)), 1 << 30)
