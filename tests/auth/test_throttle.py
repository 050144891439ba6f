"""Wrong credentials are slowed down, by address, within bounds."""

import pytest

from queueber.auth.throttle import _ADDRESSES_MAX, CHECKS_MAX, Throttle
from queueber.clock import ManualClock
from queueber.errors import Unavailable


def test_each_failure_takes_longer_up_to_a_limit_and_time_forgets() -> None:
    clock = ManualClock()
    throttle = Throttle(clock)

    assert [throttle.failed("a") for _ in range(6)] == [100, 200, 400, 800, 1000, 1000]
    assert throttle.failed("b") == 100
    clock.advance(20_000)
    assert throttle.failed("a") == 400
    clock.advance(100_000)
    assert throttle.failed("a") == 100


def test_addresses_that_are_remembered_are_bounded() -> None:
    throttle = Throttle(ManualClock())

    for at in range(_ADDRESSES_MAX + 10):
        throttle.failed(f"host {at}")
        throttle.wrong_password(f"host {at}", "user")

    assert len(throttle._addresses) == len(throttle._users) == _ADDRESSES_MAX
    assert throttle.failed("host 0") == 100  # the oldest is forgotten


def test_after_five_wrong_passwords_of_a_user_none_is_looked_at_for_a_while() -> None:
    clock = ManualClock()
    throttle = Throttle(clock)
    for _ in range(5):
        throttle.check_password("a", "alice")
        throttle.wrong_password("a", "alice")

    with pytest.raises(Unavailable, match="too many wrong passwords") as caught:
        throttle.check_password("a", "alice")

    assert 4000 < caught.value.numbers["retry_after_ms"] <= 5001
    throttle.check_password("a", "bob")
    throttle.check_password("b", "alice")
    clock.advance(5001)
    throttle.check_password("a", "alice")


def test_passwords_that_wait_to_be_checked_are_bounded() -> None:
    throttle = Throttle(ManualClock())
    throttle.checks = CHECKS_MAX

    with pytest.raises(Unavailable, match="16 passwords are being checked, the limit"):
        throttle.check_password("a", "alice")
