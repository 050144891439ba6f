"""The settings of a queue on the command line: their flags, and how they are shown."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import click

from queueber.cli.options import number, seconds_up_to
from queueber.cli.output import to_duration
from queueber.client import Backoff
from queueber.client.arguments.queue_settings import SettingsArguments
from queueber.errors import InvalidArgument
from queueber.limits import (
    DEDUP_WINDOW_MS_MAX,
    DELAY_MS_MAX,
    LEASE_MS_MAX,
    RESULT_AGE_MS_MAX,
    SECOND_MS,
)
from queueber.model import QueueSettings

F = TypeVar("F", bound=Callable[..., object])


_delay = seconds_up_to(DELAY_MS_MAX)
_lease = seconds_up_to(LEASE_MS_MAX, is_zero_allowed=False)


def delays(value: object) -> list[float]:
    """The type of an option: seconds with commas between them."""
    return [_delay(each) for each in str(value).split(",")]


def share(value: object) -> float:
    """The type of an option: a number; the client knows its bounds."""
    try:
        return float(str(value))
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a number.") from None


_FLAGS: tuple[tuple[str, Callable[[object], Any], str, str], ...] = (
    ("--items-max", number, "NUMBER", "Most items; 0: no limit."),
    ("--bytes-max", number, "NUMBER", "Most bytes of contents; 0: no limit."),
    ("--item-bytes-max", number, "NUMBER", "Largest contents of one item; 0: the server's limit."),
    ("--lease", _lease, "SECONDS", "Lease of a poll that names none."),
    ("--attempts-max", number, "NUMBER", "An item that failed as often is a dead letter."),
    ("--backoff", delays, "LIST", "Seconds a failed item stays away, as in 1,10,60."),
    ("--backoff-base", _delay, "SECONDS", "Or: seconds after the first failure,"),
    ("--backoff-factor", share, "NUMBER", "so many times as long after each further one,"),
    ("--backoff-cap", _delay, "SECONDS", "at most so long,"),
    ("--backoff-jitter", share, "NUMBER", "less up to this share of it, by chance."),
    (
        "--dedup-window",
        seconds_up_to(DEDUP_WINDOW_MS_MAX),
        "SECONDS",
        "How long a key keeps out others.",
    ),
    (
        "--result-age",
        seconds_up_to(RESULT_AGE_MS_MAX),
        "SECONDS",
        "How long results are kept; 0: no limit.",
    ),
    ("--result-bytes-max", number, "NUMBER", "Most bytes of results; 0: no limit."),
)

_BACKOFF_FLAGS = {
    "backoff_base": "base",
    "backoff_factor": "factor",
    "backoff_cap": "cap",
    "backoff_jitter": "jitter",
}


def settings_options(command: F) -> F:
    """A flag for each setting: None when not given."""
    for flag, kind, metavar, text in reversed(_FLAGS):
        command = click.option(flag, type=kind, metavar=metavar, help=text)(command)
    return command


def to_arguments(given: dict[str, Any], present: QueueSettings) -> SettingsArguments:
    """What the client takes. A backoff is set as a whole: what is not given of it stays."""
    named = {name: value for name, value in given.items() if value is not None}
    parts = {_BACKOFF_FLAGS[name]: named.pop(name) for name in _BACKOFF_FLAGS if name in named}
    if parts and "backoff" in named:
        raise InvalidArgument("give --backoff, a list, or --backoff-base and the like, not both")
    if parts:
        stays = {
            "base": present.backoff_base_ms / SECOND_MS,
            "factor": present.backoff_factor,
            "cap": present.backoff_cap_ms / SECOND_MS,
            "jitter": present.backoff_jitter,
        }
        whole = stays | parts
        if whole["cap"] < whole["base"] and parts.keys() & {"base", "cap"}:
            raise InvalidArgument(
                f"--backoff-cap: {whole['cap']:g} s is below --backoff-base, which is "
                f"{whole['base']:g} s; no delay would be as long as its base"
            )
        named["backoff"] = Backoff(**whole)
    return cast("SettingsArguments", named)  # flags are named as the settings are


def settings_rows(settings: QueueSettings) -> list[tuple[str, str]]:
    s = settings
    return [
        ("items, limit", _limit(s.items_max)),
        ("bytes, limit", _limit(s.bytes_max)),
        ("item bytes, limit", _limit(s.item_bytes_max)),
        ("lease", to_duration(s.lease_ms)),
        ("attempts, limit", f"{s.attempts_max:,}"),
        ("backoff", _backoff(s)),
        ("dedup window", to_duration(s.dedup_window_ms)),
        ("result age, limit", to_duration(s.result_age_ms) if s.result_age_ms else "none"),
        ("result bytes, limit", _limit(s.result_bytes_max)),
    ]


def _backoff(s: QueueSettings) -> str:
    if s.backoff_ms:
        return ", ".join(to_duration(each) for each in s.backoff_ms)
    return (
        f"{to_duration(s.backoff_base_ms)} * {s.backoff_factor:g}^n up to "
        f"{to_duration(s.backoff_cap_ms)}, jitter {s.backoff_jitter:g}"
    )


def _limit(value: int) -> str:
    return f"{value:,}" if value else "none"
