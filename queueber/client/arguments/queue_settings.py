"""The settings of a queue as users write them, turned into a `QueueSettings`."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypedDict

from queueber.client.arguments.values import Seconds, to_ms, to_number, to_some_ms, to_text
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

Rate: TypeAlias = tuple[int, Seconds]
"""A number of items, and the time in which so many may be leased."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long a failed item is delayed: `base` after its first failure, `factor` times as long
    after each further one, at most `cap`. Each delay is cut at random by up to the share `jitter`,
    so that items that failed together do not come back together."""

    base: Seconds = 1.0
    factor: float = 2.0
    cap: Seconds = 3600.0
    jitter: float = 0.1


class SettingsArguments(TypedDict, total=False):
    """The settings of a queue. Durations are seconds or `timedelta`s."""

    items_max: int
    """Most items; 0: no limit."""
    bytes_max: int
    """Most bytes of contents; 0: no limit."""
    item_bytes_max: int
    """Largest contents of one item; 0: the server's limit."""
    lease: Seconds
    """The lease of a poll that names none: 60."""
    attempts_max: int
    """After so many failures an item is a dead letter; 0: never. 20."""
    isolation: bool
    """Whether the items of a lease that expires are tried apart, so that one that kills workers
    does not take others with it: True."""
    backoff: Backoff | Sequence[Seconds]
    """How long a failed item is delayed; or a list of the delays after its first failure, its
    second, and so on, of which the last one repeats."""
    dedup_window: Seconds
    """How long a second item with the same key is not stored: 600."""
    result_age: Seconds
    """How long results are kept; 0: no limit. 7 days."""
    result_bytes_max: int
    """Beyond so many bytes the oldest results are deleted; 0: no limit."""
    concurrency_max: int
    """Most items that are leased at once; 0: no limit."""
    rate: Rate | None
    """So many items in so many seconds, as in `(100, 60)`; None: no limit."""
    batches_max: int
    """Batches that the queue remembers; 0: no limit. 10 million."""
    batch_keep: Seconds
    """How long it remembers a batch after its end: 7 days."""
    cap_by: str
    """The attribute by which items are capped apart, such as `"customer"`; empty: none."""
    cap_by_concurrency_max: int
    """Most items with one value of that attribute that are leased at once; 0: no limit."""
    cap_by_rate: Rate | None
    """So many items with one value of it in so many seconds, as in `(100, 60)`; None: no limit."""
    dead_age: Seconds | None
    """How long dead letters are kept; None: until somebody redrives or deletes them."""


def to_settings(present: object, given: SettingsArguments) -> QueueSettings:
    """The present settings, changed to those that are given."""
    if not isinstance(present, QueueSettings):
        raise InvalidArgument(f"settings: {present!r} is not a QueueSettings")
    return _with_attribute(replace(present, **to_changes(given)))


def to_changes(given: SettingsArguments) -> dict[str, Any]:
    """The fields of a `QueueSettings` that change. Each is right by itself."""
    changed: dict[str, Any] = {}
    for field, value in given.items():
        if field in _NUMBERS:
            changed[field] = to_number(field, value)
        elif field in _DURATIONS:
            wire_field, limit_ms = _DURATIONS[field]
            changed[wire_field] = to_ms(field, value, limit_ms)
        elif field in _SOME_TIME:
            changed[f"{field}_ms"] = to_some_ms(field, value, _SOME_TIME[field])
        elif field in _LIMITED:
            changed[field] = to_number(field, value, limit=_LIMITED[field])
        elif field in _CAPS:
            changed |= _to_cap(field, value)
        elif field == "dead_age":
            changed["dead_age_ms"] = 0 if value is None else to_ms(field, value, DEAD_AGE_MS_MAX)
        elif field == "isolation":
            if not isinstance(value, bool):
                raise InvalidArgument(f"isolation: {value!r} is neither True nor False")
            changed[field] = value
        elif field == "backoff":
            changed |= _to_backoff(value)
        else:
            raise InvalidArgument(f"{field}: there is no such setting")
    return changed


def _with_attribute(settings: QueueSettings) -> QueueSettings:
    caps = {
        "cap_by_concurrency_max": settings.cap_by_concurrency_max,
        "cap_by_rate": settings.cap_by_rate_items,
    }
    for name, cap in caps.items():
        if cap and not settings.cap_by:
            raise InvalidArgument(f"cap_by: it is empty; name the attribute that {name} is about")
    return settings


_NUMBERS = ("items_max", "bytes_max", "item_bytes_max", "result_bytes_max")
_LIMITED = {
    "attempts_max": ATTEMPTS_CEILING,
    "batches_max": BATCH_NUMBER_MAX,
    "concurrency_max": CAP_ITEMS_MAX,
    "cap_by_concurrency_max": CAP_ITEMS_MAX,
}
_SOME_TIME = {"lease": LEASE_MS_MAX, "batch_keep": BATCH_KEEP_MS_MAX}
_RATES = ("rate", "cap_by_rate")
_CAPS = (*_RATES, "cap_by")
_DURATIONS = {
    "dedup_window": ("dedup_window_ms", DEDUP_WINDOW_MS_MAX),
    "result_age": ("result_age_ms", RESULT_AGE_MS_MAX),
}
_FACTOR_MAX = 100.0


def _to_backoff(backoff: object) -> dict[str, object]:
    if isinstance(backoff, Backoff):
        return {
            "backoff_ms": (),
            "backoff_base_ms": to_ms("backoff.base", backoff.base, DELAY_MS_MAX),
            "backoff_factor": _to_float(
                "backoff.factor", backoff.factor, least=1.0, limit=_FACTOR_MAX
            ),
            "backoff_cap_ms": to_ms("backoff.cap", backoff.cap, DELAY_MS_MAX),
            "backoff_jitter": _to_float("backoff.jitter", backoff.jitter, least=0.0, limit=1.0),
        }
    if not isinstance(backoff, Iterable) or isinstance(backoff, str):
        raise InvalidArgument(f"backoff: {backoff!r} is neither a Backoff nor a list of seconds")
    steps_ms = tuple(to_ms("backoff", each, DELAY_MS_MAX) for each in backoff)
    if not 1 <= len(steps_ms) <= BACKOFF_STEPS_MAX:
        raise InvalidArgument(
            f"backoff: it has {len(steps_ms)} delays; give 1 to {BACKOFF_STEPS_MAX}"
        )
    return {"backoff_ms": steps_ms}


def _to_cap(field: str, value: object) -> dict[str, object]:
    if field in _RATES:
        items, ms = _to_rate(field, value)
        return {f"{field}_items": items, f"{field}_ms": ms}
    if not isinstance(value, str):
        raise InvalidArgument(f"cap_by: {value!r} is not the name of an attribute")
    return {field: to_text("cap_by", value, CAP_BY_BYTES_MAX)}


def _to_rate(field: str, rate: object) -> tuple[int, int]:
    if rate is None:
        return 0, 0
    if not isinstance(rate, tuple | list) or len(rate) != 2:
        raise InvalidArgument(f"{field}: {rate!r} is not a pair of items and seconds, as (100, 60)")
    items = to_number(field, rate[0], limit=CAP_ITEMS_MAX)
    if not items:
        raise InvalidArgument(f"{field}: 0 items; give 1 or more, or None for no limit")
    return items, to_some_ms(field, rate[1], RATE_MS_MAX)


def _to_float(field: str, value: object, *, least: float, limit: float) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not least <= value <= limit:  # type: ignore[operator]
        raise InvalidArgument(f"{field}: {value!r} is not a number from {least:g} to {limit:g}")
    return float(value)  # type: ignore[arg-type]
