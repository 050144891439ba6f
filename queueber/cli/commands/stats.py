"""`queueber stats`: counters and settings of one queue."""

import sys
from collections.abc import Callable
from threading import Event
from typing import Any

import click

from queueber import Queue
from queueber.cli.flags import seconds_up_to
from queueber.cli.output import counted, number_rows, table_of, to_duration
from queueber.cli.queue_settings import settings_rows
from queueber.cli.target import Target, queue_flags
from queueber.clock import SystemClock
from queueber.limits import DELAY_MS_MAX, HOUR_MS, SECOND_MS
from queueber.model import Stats

_HEADING_LINES = 1


@click.command()
@click.option("--watch", is_flag=True, help="Show them again and again, until Ctrl-C.")
@click.option(
    "--every", type=seconds_up_to(HOUR_MS, is_zero_allowed=False), default=1.0, show_default=True,
    help="With --watch: seconds between two looks.",
)  # fmt: skip
@queue_flags
def stats(target: Target, watch: bool, every: float) -> None:
    """Show the counters and settings of a queue.

    \b
    Examples:
      queueber stats -q images
      queueber stats -q images --watch
      queueber stats -q images --watch --every 10 --json | jq .ready

    First how many items are in each state now, then how often each thing happened since the queue
    was created, then its settings. 'oldest, seconds' is how long the oldest ready item has waited.
    With --watch only the numbers, in place on a terminal, as many as it has lines for; otherwise
    one table after the other.
    With --json: one object, with names such as "ready", "leased" and "addedTotal".
    """
    with target.open_queue() as queue:
        if watch:
            _watch(target, queue, every, Event().wait)
            return
        found = queue.stats()
    rows = [*_numbers(found), *settings_rows(found.settings)]
    target.echo_table((f"queue {found.name}", ""), rows, found)


def _watch(target: Target, queue: Queue, every: float, sleep: Callable[[float], object]) -> None:
    if target.use_json or not sys.stdout.isatty():
        while True:
            found = queue.stats()
            target.echo_table((f"queue {found.name}", ""), _numbers(found), found)
            sleep(every)
    from rich.console import Console
    from rich.live import Live

    console = Console(markup=False, emoji=False, highlight=False)
    with Live(console=console, auto_refresh=False) as live:
        while True:
            live.update(_fitting(queue.stats(), console.size.height), refresh=True)
            sleep(every)


def _fitting(found: Stats, lines: int) -> Any:
    """As many numbers as a terminal has lines for, and how many there are beside them."""
    from rich.console import Group

    rows = _numbers(found)
    is_whole = len(rows) + _HEADING_LINES <= lines
    fitting = rows if is_whole else rows[: max(0, lines - _HEADING_LINES - 1)]
    table = table_of((f"queue {found.name}", ""), fitting)
    left_out = counted(len(rows) - len(fitting), "row")
    return table if is_whole else Group(table, f"and {left_out} more: the terminal is too low")


def _numbers(found: Stats) -> list[tuple[str, str]]:
    return [
        ("paused", paused(found.paused_until_ms)),
        *number_rows(found, "ready", "delayed", "waiting", "leased", "dead"),
        ("bytes", f"{found.contents_bytes:,}"),
        ("oldest, seconds", oldest(found)),
        *number_rows(
            found,
            "parked",
            "leases",
            "waiting_polls",
            "batches",
            "callbacks",
            "results",
            "result_bytes",
        ),
        *((word, f"{getattr(found, f'{word}_total'):,}") for word in _TOTALS),
    ]


_TOTALS = (
    "added", "duplicates", "polled", "extended", "expired", "released", "failed", "died",
    "unclaimed", "redriven", "cancelled", "removed", "completed",
)  # fmt: skip


def oldest(found: Stats) -> str:
    return f"{found.oldest_claimable_age_ms / SECOND_MS:,.1f}"


def paused(until_ms: int) -> str:
    if not until_ms:
        return "no"
    left_ms = max(0, until_ms - SystemClock().now_ms()) // SECOND_MS * SECOND_MS
    return "until 'resume'" if is_endless(until_ms) else f"for {to_duration(left_ms)}"


def is_endless(until_ms: int) -> bool:
    """Longer than any pause with an end may be."""
    return until_ms > SystemClock().now_ms() + 2 * DELAY_MS_MAX
