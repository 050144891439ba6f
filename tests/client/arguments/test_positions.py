"""Places in a topic as users write them."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from queueber import InvalidArgument, Position, Start
from queueber.client.arguments.positions import to_position


@pytest.mark.parametrize(
    ("given", "position"),
    [
        ({}, Position(Start.EARLIEST)),
        ({"start": 0}, Position(Start.OFFSET, 0)),
        ({"start": 17, "moves": True}, Position(Start.OFFSET, 17, True)),
        ({"start": "earliest"}, Position(Start.EARLIEST)),
        ({"start": "latest"}, Position(Start.LATEST)),
        ({"start": datetime(2026, 1, 1, tzinfo=UTC)}, Position(Start.TIME, 1767225600000)),
        (
            {"time": datetime(2026, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))},
            Position(Start.TIME, 1767225600000),
        ),
        ({"time": 1.5}, Position(Start.TIME, 1500)),
        ({"last": 10}, Position(Start.LAST, 10)),
        ({"start": Position(Start.LAST, 3)}, Position(Start.LAST, 3)),
    ],
)
def test_a_start_becomes_a_position(given: Any, position: Position) -> None:
    assert to_position(**given) == position


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"start": -1}, "start: -1 is not an offset, 0 or more"),
        ({"start": True}, "start: True is not an offset, 0 or more"),
        ({"start": "first"}, "start: 'first' is neither 'earliest' nor 'latest'"),
        ({"start": 1, "last": 1}, "last: start was given, too; give one of them"),
        ({"time": datetime(2026, 1, 1)}, "time: 2026-01-01T00:00:00 has no time zone"),  # noqa: DTZ001
        ({"time": -1}, "time: -1 is neither a datetime nor seconds since 1970"),
        ({"last": -1}, "last: -1 is not a number, 0 or more"),
        ({"moves": 1}, "moves: 1 is neither True nor False"),
    ],
)
def test_what_is_no_place_is_refused_with_a_reason(given: Any, told: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        to_position(**given)

    assert told in str(refused.value)
