"""`queueber stats`: counters and settings of one queue."""

import click

from queueber.cli.output import number_rows, to_duration
from queueber.cli.queue_settings import settings_rows
from queueber.cli.target import Target, queue_flags
from queueber.clock import SystemClock
from queueber.limits import DELAY_MS_MAX, SECOND_MS
from queueber.model import Stats


@click.command()
@queue_flags
def stats(target: Target) -> None:
    """Show the counters and settings of a queue.

    \b
    Example:
      queueber stats -q images

    First how many items are in each state now, then how often each thing happened since the queue
    was created, then its settings. 'oldest, seconds' is how long the oldest ready item has waited.
    With --json: one object, with names such as "ready", "leased" and "addedTotal".
    """
    with target.open_queue() as queue:
        found = queue.stats()
    rows = [
        ("paused", paused(found.paused_until_ms)),
        *number_rows(found, "ready", "delayed", "leased", "dead"),
        ("bytes", f"{found.contents_bytes:,}"),
        ("oldest, seconds", oldest(found)),
        *number_rows(found, "leases", "waiting_polls", "batches", "results", "result_bytes"),
        *((word, f"{getattr(found, f'{word}_total'):,}") for word in _TOTALS),
        *settings_rows(found.settings),
    ]
    target.echo_table((f"queue {found.name}", ""), rows, found)


_TOTALS = (
    "added", "duplicates", "polled", "extended", "expired", "released", "failed", "died",
    "redriven", "cancelled", "removed", "completed",
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
