"""Settings of a topic: their flags, and how they are printed."""

from collections.abc import Callable
from typing import Any

import click

from queueber.cli.flags import F, seconds_up_to, whole_number
from queueber.cli.output import to_duration, to_time
from queueber.cli.topics.start_flags import place
from queueber.limits import DEDUP_WINDOW_MS_MAX, RETENTION_MS_MAX
from queueber.model import TopicSettings

_age = seconds_up_to(RETENTION_MS_MAX)

_FLAGS: tuple[tuple[str, Callable[[object], Any], str], ...] = (
    ("--retention", _age, "How long messages are kept; 0: no limit."),
    ("--retention-bytes", whole_number, "Most bytes of each partition; 0: no limit."),
    ("--retention-messages", whole_number, "Most messages of each partition; 0: no limit."),
    ("--tombstone", _age, "How long a message without a payload is kept, with one per key."),
    ("--ttl", _age, "Delete the topic once nobody has used it for so long; 0: never."),
    ("--expires-at", place, "Delete the topic at this time."),
    ("--dedup-window", seconds_up_to(DEDUP_WINDOW_MS_MAX), "How long dedup ids are known."),
)
_SWITCHES = (
    (
        "--deletes-acknowledged/--keeps-acknowledged",
        "deletes_acknowledged",
        "Whether messages are deleted once all groups have acknowledged them.",
    ),
    (
        "--refuses-when-full/--drops-when-full",
        "refuses_when_full",
        "Whether messages are refused at a limit, or the oldest deleted.",
    ),
    (
        "--keeps-last-per-key/--keeps-all",
        "keeps_last_per_key",
        "Whether a message replaces the one before it with its key.",
    ),
)


def settings_flags(command: F) -> F:
    """A flag for each setting; its value is None if it is not given."""
    for flag, name, text in reversed(_SWITCHES):
        command = click.option(flag, name, default=None, help=text)(command)
    for flag, kind, text in reversed(_FLAGS):
        command = click.option(flag, type=kind, help=text)(command)
    return command


def to_arguments(given: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}


def settings_rows(settings: TopicSettings) -> list[tuple[str, str]]:
    s = settings
    rows = [
        ("retention", to_duration(s.retention_ms) if s.retention_ms else "none"),
        ("retention, bytes", f"{s.retention_bytes:,}" if s.retention_bytes else "none"),
        ("retention, messages", f"{s.retention_messages:,}" if s.retention_messages else "none"),
        ("deletes acknowledged", "yes" if s.deletes_acknowledged else "no"),
        ("when full", "refuses" if s.refuses_when_full else "deletes the oldest"),
        ("keeps last per key", "yes" if s.keeps_last_per_key else "no"),
        ("dedup window", to_duration(s.dedup_window_ms)),
    ]
    if s.keeps_last_per_key:
        rows.append(("tombstones", to_duration(s.tombstone_ms)))
    if s.ttl_ms:
        rows.append(("time to live", to_duration(s.ttl_ms)))
    if s.expires_at_ms:
        rows.append(("expires at", to_time(s.expires_at_ms)))
    return rows
