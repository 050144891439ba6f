"""The arguments of a schedule."""

from typing import Any

import pytest

from queueber.client.arguments.schedules import to_schedule
from queueber.errors import InvalidArgument
from queueber.model import Missed, Schedule

GOOD: dict[str, Any] = {
    "name": "n", "when": "@daily", "queue": "q", "contents": b"x", "zone": "UTC", "missed": "all",
    "priority": 3, "attributes": None,
}  # fmt: skip


def test_good_arguments_are_a_schedule() -> None:
    assert to_schedule(**GOOD) == Schedule("n", "@daily", "q", b"x", "UTC", Missed.ALL, 3, {})


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"name": "ü"}, "name: 'ü' is not the name of a schedule"),
        ({"name": 3}, "name: 3 is not the name of a schedule"),
        ({"when": "0 3 * *"}, "when: '0 3 [*] [*]' is no schedule"),
        ({"when": 3}, "when: 3 is not text"),
        ({"zone": "Mars"}, "zone: 'Mars' is no time zone"),
        ({"zone": None}, "zone: None is not text"),
        ({"contents": "text"}, "contents: 'text' is not bytes"),
        ({"missed": "never"}, "missed: 'never' is none of once, skip, all"),
        ({"priority": 10}, "priority: 10 is too many; the limit is 9"),
        ({"attributes": {"a": 1}}, "attributes: 1 is not text"),
        ({"queue": "ü"}, "is not a queue name"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        to_schedule(**{**GOOD, **arguments})
