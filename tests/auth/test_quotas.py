"""Quotas by a clock that tests move."""

import pytest

from queueber.auth.quotas import QuotaLimits, Quotas, Usage
from queueber.clock import ManualClock
from queueber.errors import ResourceExhausted, Unavailable


def refused_ms(usage: Usage) -> int:
    with pytest.raises(Unavailable) as caught:
        usage.begin_call()
    return caught.value.numbers["retry_after_ms"]


def test_calls_above_the_rate_are_refused_until_time_has_passed() -> None:
    clock = ManualClock()
    usage = Usage(QuotaLimits(calls_per_second=10), clock)

    for _ in range(10):
        usage.begin_call()
    wait_ms = refused_ms(usage)

    assert 100 <= wait_ms <= 101
    clock.advance(wait_ms)
    usage.begin_call()
    assert refused_ms(usage) > 0
    clock.advance(3_600_000)
    for _ in range(10):
        usage.begin_call()  # an hour of rest is worth one second
    assert refused_ms(usage) > 0


def test_bytes_above_the_rate_must_be_made_up_for() -> None:
    clock = ManualClock()
    usage = Usage(QuotaLimits(bytes_per_second=1000), clock)

    usage.moved(1000)
    usage.begin_call()
    usage.moved(5000)
    wait_ms = refused_ms(usage)

    assert 5000 <= wait_ms <= 5001
    clock.advance(wait_ms - 2)
    assert refused_ms(usage) > 0
    clock.advance(2)
    usage.begin_call()


def test_a_caller_is_one_over_all_its_connections_and_others_are_others() -> None:
    quotas = Quotas(QuotaLimits(calls_per_second=1), ManualClock())
    first, again, other = quotas.of("a"), quotas.of("a"), quotas.of("b")
    assert first is again
    assert first is not None
    assert other is not None

    first.begin_call()

    assert refused_ms(first) > 0
    other.begin_call()


def test_without_limits_nothing_is_counted() -> None:
    assert Quotas(QuotaLimits(), ManualClock()).of("a") is None


def test_what_exists_is_counted_once_a_second_and_new_ones_at_once() -> None:
    clock = ManualClock()
    usage = Usage(QuotaLimits(queues=5), clock)
    counted: list[int] = []

    def count(limit: int) -> int:
        counted.append(limit)
        return 3

    usage.check_may_create("queue", count)
    usage.check_may_create("queue", count)
    with pytest.raises(
        ResourceExhausted, match=r"there are 5 queues .* its limit is 5, delete some"
    ):
        usage.check_may_create("queue", count)
    assert counted == [5]
    clock.advance(1000)
    usage.check_may_create("queue", count)
    usage.check_may_create("topic", count)  # topics have no limit here
    assert counted == [5, 5]
