"""`queueber stats`: counters and settings of one queue."""

import click

from queueber.cli.flags.queue_settings import settings_rows
from queueber.cli.flags.target import Target, client_flags, queue_flag
from queueber.cli.output.json_lines import echo_json, to_json
from queueber.cli.output.text import echo_table, to_duration
from queueber.clock import SystemClock
from queueber.limits import DELAY_MS_MAX, SECOND_MS
from queueber.model import Stats


@click.command()
@queue_flag
@client_flags
def stats(target: Target, queue: str) -> None:
    """Show the counters and settings of a queue.

    \b
    Example:
      queueber stats -q images

    First how many items are in each state now, then how often each thing happened since the queue
    was created, then its settings. 'oldest, seconds' is how long the oldest ready item has waited.
    With --json: one object, with names such as "ready", "leased" and "addedTotal".
    """
    with target.connect() as client:
        found = client.queue(queue, must_exist=True).stats()
    if target.use_json:
        echo_json(to_json(found))
        return
    rows = [(name, f"{value:,}") for name, value in _numbers(found)]
    rows.insert(0, ("paused", paused(found.paused_until_ms)))
    rows.insert(6, ("oldest, seconds", oldest(found)))
    echo_table((f"queue {found.name}", ""), rows + settings_rows(found.settings))


_TOTALS = (
    "added", "duplicates", "polled", "extended", "expired", "released", "failed", "died",
    "redriven", "cancelled", "removed", "completed",
)  # fmt: skip


def _numbers(found: Stats) -> list[tuple[str, int]]:
    return [
        ("ready", found.ready),
        ("delayed", found.delayed),
        ("leased", found.leased),
        ("dead", found.dead),
        ("bytes", found.contents_bytes),
        ("leases", found.leases),
        ("waiting polls", found.waiting_polls),
        ("batches", found.batches),
        ("results", found.results),
        ("result bytes", found.result_bytes),
        *((word, getattr(found, f"{word}_total")) for word in _TOTALS),
    ]


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
