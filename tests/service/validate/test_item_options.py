"""The checks of what items have of their own: at each limit, and one past it."""

import pytest

from queueber.errors import InvalidArgument
from queueber.limits import (
    ATTEMPTS_CEILING,
    DELAY_MS_MAX,
    ITEM_BACKOFF_STEPS_MAX,
    ITEM_TIMEOUT_MS_MAX,
)
from queueber.model import NO_OPTIONS, ItemOptions, NewItems
from queueber.service.validate.item_options import check_options


def check(*options: ItemOptions) -> None:
    check_options(NewItems([b"a"], options=options))


@pytest.mark.parametrize(
    "options",
    [
        NO_OPTIONS,
        ItemOptions(0),
        ItemOptions(ATTEMPTS_CEILING, (0,) * ITEM_BACKOFF_STEPS_MAX),
        ItemOptions(None, (DELAY_MS_MAX,)),
        ItemOptions(None, (), ITEM_TIMEOUT_MS_MAX, DELAY_MS_MAX),
    ],
)
def test_options_up_to_the_limits_are_taken(options: ItemOptions) -> None:
    check(options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (ItemOptions(-2), "options.attemptsMax: -2 is out of range"),
        (ItemOptions(ATTEMPTS_CEILING + 1), "options.attemptsMax: 1001 is out of range"),
        (ItemOptions(None, (1,) * 17), "options.backoffMs: 17 delays; the limit is 16"),
        (ItemOptions(None, (DELAY_MS_MAX + 1,)), "options.backoffMs: 31622400001 is out of range"),
        (
            ItemOptions(timeout_ms=ITEM_TIMEOUT_MS_MAX + 1),
            "options.timeoutMs: 604800001 is out of range",
        ),
        (
            ItemOptions(expires_ms=DELAY_MS_MAX + 1),
            "options.expiresMs: 31622400001 is out of range",
        ),
    ],
)
def test_options_past_the_limits_are_refused(options: ItemOptions, words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        check(options)


def test_options_are_one_for_each_item() -> None:
    with pytest.raises(InvalidArgument, match="options: 2 for 1 items; give one for each"):
        check(NO_OPTIONS, NO_OPTIONS)


def test_an_item_expires_after_its_delay_is_over() -> None:
    own = [NO_OPTIONS, ItemOptions(expires_ms=100)]
    check_options(NewItems([b"a", b"b"], [100, 99], options=own))

    with pytest.raises(InvalidArgument, match="expires after 100 ms has a delay of 100 ms"):
        check_options(NewItems([b"a", b"b"], [0, 100], options=own))
