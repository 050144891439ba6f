"""`queueber stats`: one queue in numbers."""

import click

from queueber.cli.finding import find_stats
from queueber.cli.options import Target, client_options, queue_option
from queueber.cli.output import echo_json, echo_table, to_duration, to_json
from queueber.cli.settings import settings_rows
from queueber.clock import SystemClock
from queueber.limits import DELAY_MS_MAX, SECOND_MS
from queueber.model import Stats


@click.command()
@queue_option
@client_options
def stats(target: Target, queue: str) -> None:
    """Show one queue in numbers, and its settings.

    \b
    Example:
      queueber stats -q images

    Tells what is in it, and what happened since it was created. 'oldest, seconds' is how long the
    item has waited that could be polled longest. With --json: an object with the fields of the
    wire, such as "inProgress".
    """
    with target.connect() as client:
        found = find_stats(client, queue)
    if target.use_json:
        echo_json(to_json(found))
        return
    rows = [(name, f"{value:,}") for name, value in _numbers(found)]
    rows.insert(0, ("paused", paused(found.paused_until_ms)))
    rows.insert(6, ("oldest, seconds", oldest(found)))
    echo_table((f"queue {found.name}", ""), rows + settings_rows(found.settings))


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
        ("added", found.added_total),
        ("duplicates", found.duplicates_total),
        ("polled", found.polled_total),
        ("extended", found.extended_total),
        ("expired", found.expired_total),
        ("released", found.released_total),
        ("failed", found.failed_total),
        ("died", found.died_total),
        ("redriven", found.redriven_total),
        ("cancelled", found.cancelled_total),
        ("removed", found.removed_total),
        ("completed", found.completed_total),
    ]


def oldest(found: Stats) -> str:
    return f"{found.oldest_claimable_age_ms / SECOND_MS:,.1f}"


def paused(until_ms: int) -> str:
    if not until_ms:
        return "no"
    left_ms = max(0, until_ms - SystemClock().now_ms()) // SECOND_MS * SECOND_MS
    return "until 'resume'" if is_endless(until_ms) else f"for {to_duration(left_ms)}"


def is_endless(until_ms: int) -> bool:
    """No pause with an end is as long."""
    return until_ms > SystemClock().now_ms() + 2 * DELAY_MS_MAX
