"""What items have of their own: one for all of them, or one for each."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from queueber.client.arguments.item_options import to_own_options
from queueber.client.arguments.new_items import to_new_items
from queueber.client.calls.adds import joined
from queueber.errors import InvalidArgument
from queueber.limits import ATTEMPTS_CEILING, ITEM_BACKOFF_STEPS_MAX
from queueber.model import NO_OPTIONS, ItemOptions


def options(**given: Any) -> list[ItemOptions]:
    return list(to_new_items([b"a", b"b"], **given).options)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, []),
        ({"attempts": [None, None]}, []),
        ({"attempts": 3}, [ItemOptions(3)] * 2),
        ({"attempts": 0}, [ItemOptions(0)] * 2),
        ({"attempts": [None, 3]}, [NO_OPTIONS, ItemOptions(3)]),
        ({"backoff": 1.5}, [ItemOptions(None, (1500,))] * 2),
        ({"backoff": [1, timedelta(seconds=2)]}, [ItemOptions(None, (1000, 2000))] * 2),
        ({"backoff": [[1], (2, 3)]}, [ItemOptions(None, (1000,)), ItemOptions(None, (2000, 3000))]),
        ({"backoff": [None, [0]]}, [NO_OPTIONS, ItemOptions(None, (0,))]),
        ({"timeout": 1.5}, [ItemOptions(timeout_ms=1500)] * 2),
        ({"timeout": [None, timedelta(minutes=1)]}, [NO_OPTIONS, ItemOptions(timeout_ms=60_000)]),
        ({"expires": 10}, [ItemOptions(expires_ms=10_000)] * 2),
        ({"expires": [None, timedelta(days=1)]}, [NO_OPTIONS, ItemOptions(expires_ms=86_400_000)]),
        (
            {"attempts": [1, 2], "backoff": 1},
            [ItemOptions(1, (1000,)), ItemOptions(2, (1000,))],
        ),
    ],
)
def test_options_are_those_of_all_items_or_of_each(given: Any, expected: list[ItemOptions]) -> None:
    assert options(**given) == expected


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"attempts": -1}, "attempts: -1 is not a number, 0 or more"),
        ({"attempts": "3"}, "attempts: '3' is not a number"),
        ({"attempts": True}, "attempts: True is not a number"),
        (
            {"attempts": ATTEMPTS_CEILING + 1},
            f"attempts: {ATTEMPTS_CEILING + 1} is too many; the limit is {ATTEMPTS_CEILING}",
        ),
        ({"attempts": [1, 2, 3]}, "attempts: 3 attempts for 2 items; give one for each"),
        ({"backoff": "1"}, "backoff: '1' is neither seconds nor a list of them"),
        ({"backoff": -1}, "backoff: -1 is not a number of seconds"),
        ({"backoff": []}, f"backoff: it has 0 delays; give 1 to {ITEM_BACKOFF_STEPS_MAX}"),
        ({"backoff": [1] * 17}, f"backoff: it has 17 delays; give 1 to {ITEM_BACKOFF_STEPS_MAX}"),
        ({"backoff": [[1]]}, "backoff: 1 lists of delays for 2 items; give one for each"),
        ({"timeout": 0}, "timeout: 0 is too short; give at least one millisecond"),
        ({"timeout": 8 * 86400}, "timeout: 691200 s is too long; the limit is 604800"),
        ({"timeout": "1"}, "timeout: '1' is not a number of seconds"),
        ({"timeout": [1]}, "timeout: 1 timeouts for 2 items; give one for each"),
        ({"expires": 0}, "expires: 0 is too short"),
        (
            {"expires": datetime.fromisoformat("2030-01-01")},
            "expires: 2030-01-01 00:00:00 has no time zone",
        ),
        ({"expires": datetime(2020, 1, 1, tzinfo=UTC)}, "expires: 2020-01-01 .* has passed"),
        ({"expires": datetime(9000, 1, 1, tzinfo=UTC)}, "expires: .* is too far away"),
        ({"expires": "soon"}, "expires: 'soon' is not a number of seconds"),
        ({"expires": [1]}, "expires: 1 times of expiry for 2 items"),
        ({"expires": 5, "delay": 5}, "expires: an item that expires after 5 s has a delay of 5 s"),
        ({"expires": [5, 9], "delay": [1, 9.5]}, "expires: .* 9 s has a delay of 9.5 s; let it"),
        ({"timeout": float("inf")}, "timeout: inf s is too long; the limit is 604800"),
        ({"timeout": 10**400}, "timeout: 10+ s is too long; the limit is 604800"),
        ({"timeout": float("nan")}, "timeout: nan is not a number of seconds"),
        ({"backoff": 366 * 86400 + 1}, "is too long; the limit is 31622400"),
    ],
)
def test_wrong_options_are_refused(given: Any, words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        options(**given)


def test_adds_that_are_sent_as_one_keep_the_options_of_each() -> None:
    adds = [to_new_items(b"a"), to_new_items([b"b", b"c"], attempts=2), to_new_items(b"d")]

    together = joined(adds)

    own = ItemOptions(2)
    assert list(together.options) == [NO_OPTIONS, own, own, NO_OPTIONS]


def test_a_moment_is_how_long_it_is_until_then() -> None:
    (first, _) = options(expires=datetime.now(UTC) + timedelta(hours=1))

    assert 3_540_000 < first.expires_ms <= 3_600_000


def test_options_of_one_item_that_the_server_adds_later() -> None:
    later = datetime.now(UTC) + timedelta(days=2)

    assert to_own_options() == NO_OPTIONS
    assert to_own_options(3, [1, 2], 30, 60) == ItemOptions(3, (1000, 2000), 30_000, 60_000)
    for wrong, words in (
        ({"expires": later}, "expires: a time was given; give seconds, counted from the add"),
        ({"attempts": [1, 2]}, "attempts: .* is not"),
        ({"timeout": 0}, "timeout: "),
    ):
        with pytest.raises(InvalidArgument, match=words):
            to_own_options(**wrong)
