"""The moment at which items become ready."""

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from queueber.client.arguments.new_items import to_new_items
from queueber.errors import InvalidArgument

TOLERANCE_MS = 60_000


@pytest.mark.parametrize("zone", [UTC, ZoneInfo("Asia/Kolkata"), ZoneInfo("America/New_York")])
def test_a_moment_is_the_delay_until_then(zone: Any) -> None:
    at = datetime.now(UTC).astimezone(zone) + timedelta(hours=3)

    first, second = to_new_items([b"a", b"b"], at=at).delays_ms

    assert first == second
    assert 3 * 3_600_000 - TOLERANCE_MS < first <= 3 * 3_600_000


def test_a_moment_that_has_passed_is_now() -> None:
    assert to_new_items(b"a", at=datetime(2020, 1, 1, tzinfo=UTC)).delays_ms == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"at": datetime.fromisoformat("2030-01-01")},
            "at: 2030-01-01 00:00:00 has no time zone; give one",
        ),
        ({"at": datetime(9000, 1, 1, tzinfo=UTC)}, "too far away; the limit is 366 days from now"),
        ({"at": 1_800_000_000}, "at: 1800000000 is not a datetime"),
        ({"at": datetime(2030, 1, 1, tzinfo=UTC), "delay": 5}, "at: delay is given, too"),
        ({"delay": [1, 2]}, "delay: 2 delays for 1 item; give one for each"),
    ],
)
def test_wrong_moments_are_refused(options: Any, words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        to_new_items(b"a", **options)
