"""The checks of a queue's settings: at each limit, and one past it."""

import math
from dataclasses import replace

import pytest

from queueber.errors import InvalidArgument
from queueber.limits import (
    ATTEMPTS_CEILING,
    BACKOFF_STEPS_MAX,
    CAP_ITEMS_MAX,
    DAY_MS,
    DEAD_AGE_MS_MAX,
    DEDUP_WINDOW_MS_MAX,
    DELAY_MS_MAX,
    LEASE_MS_MAX,
    RATE_MS_MAX,
    RESULT_AGE_MS_MAX,
)
from queueber.model import QueueSettings
from queueber.service.validate.settings import check_settings
from tests.support.dumps import dump
from tests.support.service_rig import ServiceRig, limits, on_service

ITEM_BYTES_MAX = 100

RANGES: dict[str, tuple[str, float, float]] = {
    "lease_ms": ("leaseMs", 1, LEASE_MS_MAX),
    "attempts_max": ("attemptsMax", 0, ATTEMPTS_CEILING),
    "dedup_window_ms": ("dedupWindowMs", 0, DEDUP_WINDOW_MS_MAX),
    "result_age_ms": ("resultAgeMs", 0, RESULT_AGE_MS_MAX),
    "backoff_base_ms": ("backoffBaseMs", 0, DELAY_MS_MAX),
    "backoff_factor": ("backoffFactor", 1.0, 100.0),
    "backoff_cap_ms": ("backoffCapMs", 0, DELAY_MS_MAX),
    "backoff_jitter": ("backoffJitter", 0.0, 1.0),
    "concurrency_max": ("concurrencyMax", 0, CAP_ITEMS_MAX),
    "rate_items": ("rateItems", 0, CAP_ITEMS_MAX),
    "rate_ms": ("rateMs", 0, RATE_MS_MAX),
    "cap_by_concurrency_max": ("capByConcurrencyMax", 0, CAP_ITEMS_MAX),
    "cap_by_rate_items": ("capByRateItems", 0, CAP_ITEMS_MAX),
    "cap_by_rate_ms": ("capByRateMs", 0, RATE_MS_MAX),
    "dead_age_ms": ("deadAgeMs", 0, DEAD_AGE_MS_MAX),
}
"""The name in a message, the lowest value and the highest."""


def with_setting(name: str, value: object) -> QueueSettings:
    return replace(QueueSettings(), **{name: value})  # type: ignore[arg-type]


def check(settings: QueueSettings) -> None:
    check_settings(settings, ITEM_BYTES_MAX)


def test_check_settings_of_the_defaults_are_taken() -> None:
    check(QueueSettings())


@pytest.mark.parametrize("name", RANGES)
def test_check_settings_at_both_ends_of_a_range_are_taken(name: str) -> None:
    _, low, high = RANGES[name]

    check(with_setting(name, low))
    check(with_setting(name, high))


def _beyond(low: float, high: float) -> list[float]:
    if isinstance(high, float):
        return [math.nextafter(low, -1), math.nextafter(high, 1000), math.inf, -math.inf]
    return [low - 1, high + 1]


@pytest.mark.parametrize("name", RANGES)
def test_check_settings_past_an_end_of_a_range_name_the_field_the_value_and_the_range(
    name: str,
) -> None:
    field, low, high = RANGES[name]

    for value in _beyond(low, high):
        with pytest.raises(InvalidArgument) as raised:
            check(with_setting(name, value))
        assert str(raised.value) == (
            f"{field}: {value} is out of range; it must be {low} to {high}"
        )


@pytest.mark.parametrize("name", ["backoff_factor", "backoff_jitter"])
def test_check_settings_that_are_no_number_are_refused(name: str) -> None:
    field, low, high = RANGES[name]

    with pytest.raises(InvalidArgument) as raised:
        check(with_setting(name, math.nan))

    assert str(raised.value) == f"{field}: nan is out of range; it must be {low} to {high}"


# --- item bytes -----------------------------------------------------------------------------------


def test_check_settings_up_to_the_item_bytes_of_the_server_are_taken() -> None:
    check(QueueSettings(items_max=10**18, bytes_max=10**18, item_bytes_max=ITEM_BYTES_MAX))
    check(QueueSettings(result_bytes_max=10**18))


def test_check_settings_over_the_item_bytes_of_the_server_name_both() -> None:
    with pytest.raises(InvalidArgument) as raised:
        check(QueueSettings(item_bytes_max=101))

    assert str(raised.value) == "itemBytesMax: 101 is over the server's own limit of 100"


# --- delays of the backoff ------------------------------------------------------------------------


def test_check_settings_with_as_many_delays_as_allowed_are_taken() -> None:
    check(QueueSettings(backoff_ms=(0, DELAY_MS_MAX)))
    check(QueueSettings(backoff_ms=(1,) * BACKOFF_STEPS_MAX))


def test_check_settings_with_too_many_delays_name_the_number_and_the_limit() -> None:
    with pytest.raises(InvalidArgument) as raised:
        check(QueueSettings(backoff_ms=(1,) * (BACKOFF_STEPS_MAX + 1)))

    assert str(raised.value) == (
        f"backoffMs: {BACKOFF_STEPS_MAX + 1} delays; the limit is {BACKOFF_STEPS_MAX}, "
        "the last one repeats"
    )


@pytest.mark.parametrize("delay_ms", [-1, DELAY_MS_MAX + 1])
def test_check_settings_with_one_delay_out_of_range_name_it_and_the_range(delay_ms: int) -> None:
    with pytest.raises(InvalidArgument) as raised:
        check(QueueSettings(backoff_ms=(1, delay_ms, 2)))

    assert str(raised.value) == (
        f"backoffMs: {delay_ms} is out of range; it must be 0 to {DELAY_MS_MAX}"
    )


# --- as calls -------------------------------------------------------------------------------------


@on_service(limits(item_bytes_max=ITEM_BYTES_MAX))
async def test_settings_that_are_refused_create_and_change_nothing(rig: ServiceRig) -> None:
    kept = rig.queue.state.settings
    before = dump(rig.store)
    wrong = QueueSettings(result_age_ms=RESULT_AGE_MS_MAX + DAY_MS)

    with pytest.raises(InvalidArgument, match=r"^resultAgeMs: "):
        rig.service.queues.create_queue("new", wrong, rig.session)
    with pytest.raises(InvalidArgument, match=r"^resultAgeMs: "):
        rig.service.queues.configure_queue("default", wrong, rig.session)

    assert dump(rig.store) == before
    assert rig.queue.state.settings == kept
    assert [stats.name for stats in rig.service.queues.list_queues("", 0, rig.session)[0]] == [
        "default"
    ]
