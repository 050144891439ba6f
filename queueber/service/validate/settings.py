"""The checks of a queue's settings: which is wrong, what it was, and what the limit is."""

import math

from queueber.errors import InvalidArgument
from queueber.limits import (
    ATTEMPTS_CEILING,
    BACKOFF_STEPS_MAX,
    BATCH_KEEP_MS_MAX,
    BATCH_NUMBER_MAX,
    CAP_BY_BYTES_MAX,
    CAP_ITEMS_MAX,
    DEAD_AGE_MS_MAX,
    DEDUP_WINDOW_MS_MAX,
    DELAY_MS_MAX,
    LEASE_MS_MAX,
    RATE_MS_MAX,
    RESULT_AGE_MS_MAX,
)
from queueber.model import QueueSettings

_FACTOR_MAX = 100.0


def check_settings(settings: QueueSettings, item_bytes_max: int) -> None:
    s = settings
    if s.item_bytes_max > item_bytes_max:
        raise InvalidArgument(
            f"itemBytesMax: {s.item_bytes_max} is over the server's own limit of {item_bytes_max}"
        )
    check_range("leaseMs", s.lease_ms, 1, LEASE_MS_MAX)
    check_range("attemptsMax", s.attempts_max, 0, ATTEMPTS_CEILING)
    check_range("dedupWindowMs", s.dedup_window_ms, 0, DEDUP_WINDOW_MS_MAX)
    check_range("resultAgeMs", s.result_age_ms, 0, RESULT_AGE_MS_MAX)
    check_range("batchesMax", s.batches_max, 0, BATCH_NUMBER_MAX)
    check_range("batchKeepMs", s.batch_keep_ms, 1, BATCH_KEEP_MS_MAX)
    _check_backoff(s)
    check_range("concurrencyMax", s.concurrency_max, 0, CAP_ITEMS_MAX)
    check_range("rateItems", s.rate_items, 0, CAP_ITEMS_MAX)
    check_range("rateMs", s.rate_ms, 0, RATE_MS_MAX)
    check_range("capByConcurrencyMax", s.cap_by_concurrency_max, 0, CAP_ITEMS_MAX)
    check_range("capByRateItems", s.cap_by_rate_items, 0, CAP_ITEMS_MAX)
    check_range("capByRateMs", s.cap_by_rate_ms, 0, RATE_MS_MAX)
    check_range("deadAgeMs", s.dead_age_ms, 0, DEAD_AGE_MS_MAX)
    if (size := len(s.cap_by.encode())) > CAP_BY_BYTES_MAX:
        raise InvalidArgument(f"capBy: it has {size} bytes; the limit is {CAP_BY_BYTES_MAX}")


def _check_backoff(s: QueueSettings) -> None:
    if len(s.backoff_ms) > BACKOFF_STEPS_MAX:
        raise InvalidArgument(
            f"backoffMs: {len(s.backoff_ms)} delays; the limit is {BACKOFF_STEPS_MAX}, the last "
            "one repeats"
        )
    for delay_ms in s.backoff_ms:
        check_range("backoffMs", delay_ms, 0, DELAY_MS_MAX)
    check_range("backoffBaseMs", s.backoff_base_ms, 0, DELAY_MS_MAX)
    check_range("backoffFactor", s.backoff_factor, 1.0, _FACTOR_MAX)
    check_range("backoffCapMs", s.backoff_cap_ms, 0, DELAY_MS_MAX)
    check_range("backoffJitter", s.backoff_jitter, 0.0, 1.0)


def check_range(field: str, value: float, low: float, high: float) -> None:
    if math.isnan(value) or not low <= value <= high:
        raise InvalidArgument(f"{field}: {value} is out of range; it must be {low} to {high}")
