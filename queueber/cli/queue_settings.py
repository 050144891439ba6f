"""Settings of a queue: their flags, and how they are printed."""

from collections.abc import Callable
from typing import Any, cast

import click

from queueber import Backoff
from queueber.cli.flags import (
    F,
    delay_seconds,
    delays,
    lease_seconds,
    number,
    seconds_up_to,
    whole_number,
)
from queueber.cli.output import to_duration
from queueber.client.arguments.queue_settings import SettingsArguments
from queueber.errors import InvalidArgument
from queueber.limits import (
    BATCH_KEEP_MS_MAX,
    DEAD_AGE_MS_MAX,
    DEDUP_WINDOW_MS_MAX,
    RATE_MS_MAX,
    RESULT_AGE_MS_MAX,
    SECOND_MS,
)
from queueber.model import QueueSettings

_dedup_window = seconds_up_to(DEDUP_WINDOW_MS_MAX)
_result_age = seconds_up_to(RESULT_AGE_MS_MAX)
_dead_age = seconds_up_to(DEAD_AGE_MS_MAX)
_rate_seconds = seconds_up_to(RATE_MS_MAX, is_zero_allowed=False)
_batch_keep = seconds_up_to(BATCH_KEEP_MS_MAX, is_zero_allowed=False)


def _rate(value: object) -> tuple[int, float] | tuple[()]:
    """Items and seconds; empty: no limit."""
    items, slash, time = str(value).partition("/")
    if items == "0" and not slash:
        return ()
    count = whole_number(items)
    if not slash or not count:
        raise click.BadParameter(
            f"{value!r} is not ITEMS/SECONDS, such as 100/60, nor 0 for no limit."
        )
    return count, _rate_seconds(time)


_rate.__name__ = "rate"

_FLAGS: tuple[tuple[str, Callable[[object], Any], str], ...] = (
    ("--items-max", whole_number, "Most items in the queue; 0: no limit."),
    ("--bytes-max", whole_number, "Most bytes of contents in the queue; 0: no limit."),
    ("--item-bytes-max", whole_number, "Largest contents of one item; 0: the server's limit."),
    ("--lease", lease_seconds, "Length of leases, if a poll does not say."),
    ("--attempts-max", whole_number, "Failures that make an item a dead letter; 0: no limit."),
    ("--backoff", delays, "Seconds before each retry, as in 1,10,60; the last repeats."),
    ("--backoff-base", delay_seconds, "Or a formula: seconds before the first retry,"),
    ("--backoff-factor", number, "multiplied by this for each further retry,"),
    ("--backoff-cap", delay_seconds, "up to this many seconds,"),
    ("--backoff-jitter", number, "minus a random part of up to this fraction."),
    ("--dedup-window", _dedup_window, "How long a used key keeps items from being added."),
    ("--result-age", _result_age, "How long results are kept; 0: no limit."),
    ("--result-bytes-max", whole_number, "Most bytes of results; 0: no limit."),
    ("--concurrency-max", whole_number, "Most items that are leased at once; 0: no limit."),
    ("--rate", _rate, "Most items leased in a time, as in 100/60 (seconds); 0: no limit."),
    ("--batches-max", whole_number, "Most batches that are remembered; 0: no limit."),
    ("--batch-keep", _batch_keep, "How long a batch is remembered after its end."),
    ("--cap-by", str, "Attribute by which items are capped apart; '': none."),
    ("--cap-by-concurrency-max", whole_number, "Most leased at once with one value of it."),
    ("--cap-by-rate", _rate, "Most leased in a time with one value of it; 0: no limit."),
    ("--dead-age", _dead_age, "How long dead letters are kept; 0: no limit."),
)


def settings_flags(command: F) -> F:
    """A flag for each setting; its value is None if it is not given."""
    command = click.option(
        "--isolation/--no-isolation",
        default=None,
        help="Whether items of an expired lease are retried apart from each other.  [default: on]",
    )(command)
    for flag, kind, text in reversed(_FLAGS):
        command = click.option(flag, type=kind, help=text)(command)
    return command


def to_arguments(given: dict[str, Any], present: QueueSettings) -> SettingsArguments:
    """Arguments for the client. A backoff is sent whole, so missing parts come from `present`."""
    named = {name: value for name, value in given.items() if value is not None}
    for rate in {"rate", "cap_by_rate"} & named.keys():
        named[rate] = named[rate] or None
    stays = {
        "base": present.backoff_base_ms / SECOND_MS,
        "factor": present.backoff_factor,
        "cap": present.backoff_cap_ms / SECOND_MS,
        "jitter": present.backoff_jitter,
    }
    parts = {name: named.pop(f"backoff_{name}") for name in stays if f"backoff_{name}" in named}
    if parts and "backoff" in named:
        raise InvalidArgument("give --backoff, a list, or --backoff-base and the like, not both")
    if parts:
        wanted = stays | parts
        if wanted["cap"] < wanted["base"] and parts.keys() & {"base", "cap"}:
            raise InvalidArgument(
                f"--backoff-cap: {wanted['cap']:g} s is below --backoff-base, which is "
                f"{wanted['base']:g} s; no delay would be as long as its base"
            )
        named["backoff"] = Backoff(**wanted)
    return cast("SettingsArguments", named)  # flags have the names of settings


def settings_rows(settings: QueueSettings) -> list[tuple[str, str]]:
    s = settings
    return [
        ("items, limit", _limit(s.items_max)),
        ("bytes, limit", _limit(s.bytes_max)),
        ("item bytes, limit", _limit(s.item_bytes_max)),
        ("lease", to_duration(s.lease_ms)),
        ("attempts, limit", _limit(s.attempts_max)),
        ("isolation", "on" if s.isolation else "off"),
        ("backoff", _backoff(s)),
        ("dedup window", to_duration(s.dedup_window_ms)),
        ("result age, limit", to_duration(s.result_age_ms) if s.result_age_ms else "none"),
        ("result bytes, limit", _limit(s.result_bytes_max)),
        ("leased at once, limit", _limit(s.concurrency_max)),
        ("rate, limit", _rate_text(s.rate_items, s.rate_ms)),
        ("batches, limit", _limit(s.batches_max)),
        ("batches kept for", to_duration(s.batch_keep_ms)),
        ("capped by", s.cap_by or "none"),
        ("leased at once of each, limit", _limit(s.cap_by_concurrency_max)),
        ("rate of each, limit", _rate_text(s.cap_by_rate_items, s.cap_by_rate_ms)),
        ("dead letters kept for", to_duration(s.dead_age_ms) if s.dead_age_ms else "ever"),
    ]


def _rate_text(items: int, ms: int) -> str:
    return f"{items:,} in {to_duration(ms or SECOND_MS)}" if items else "none"


def _backoff(s: QueueSettings) -> str:
    if s.backoff_ms:
        return ", ".join(to_duration(each) for each in s.backoff_ms)
    return (
        f"{to_duration(s.backoff_base_ms)} * {s.backoff_factor:g}^n up to "
        f"{to_duration(s.backoff_cap_ms)}, jitter {s.backoff_jitter:g}"
    )


def _limit(value: int) -> str:
    return f"{value:,}" if value else "none"
