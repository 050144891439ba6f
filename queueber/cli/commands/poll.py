"""`queueber poll` and `extend`: lease items, and keep the lease. `finish` has the rest."""

import click
from click.exceptions import Exit

from queueber.cli.commands.stats import is_endless
from queueber.cli.exits import NEGATIVE
from queueber.cli.flags import count_flag, lease_argument, lease_seconds, seconds
from queueber.cli.output import counted, echo_json, item_to_json, to_time
from queueber.cli.target import Target, new_queue_flags, queue_flags, raw_flag
from queueber.model import Stats


@click.command()
@count_flag("--count", "-n", default=1, help="Most items to lease.")
@click.option(
    "--lease",
    type=lease_seconds,
    help="How long the items are yours. [default: the queue's --lease]",
)
@click.option(
    "--wait", type=seconds, default=0, help="How long to wait for the first item, if none is ready."
)
@click.option("--remove", "then_remove", is_flag=True, help="Remove the items after printing them.")
@raw_flag
@new_queue_flags
def poll(target: Target, count: int, lease: float | None, wait: float, then_remove: bool) -> None:
    """Lease items, and print them.

    \b
    Examples:
      queueber poll -n 10 --lease 300
      queueber poll --wait 30 --json
      queueber poll -n 100 --raw --remove | xargs -d '\\n' -n 1 ./work

    The first line shows the lease; each further line shows the id of an item and its contents. An
    indented line below an item shows its attempt (from the second on), how often it was delivered
    if that is more, key, batch and attributes.

    Nobody else gets the items until the lease ends. Then they are ready again, unless you removed
    or completed them: see 'remove', 'complete', 'fail', 'release' and 'extend'. With --remove they
    are removed right after they are printed; if the reader of the output crashes, they are lost.

    A queue that does not exist is created, unless you give --must-exist. Ends with 1 if no item is
    ready, or the queue is paused.

    Contents that are not printable text are shown as json:"..." or base64:...; --raw prints them
    unchanged. With --json: {"lease": "...", "items": [{"id": "...", "contents": "text, or null",
    "contentsBase64": "...", "attempt": 1, "key": null, "attributes": {}, "batch": null,
    "deliveries": 1, "timeout": null}]}; "lease" is null if there were no items. "deliveries" counts
    every lease of the item, "attempt" those that failed; "timeout" is how many seconds a worker may
    take with it.
    """
    with target.open_queue() as queue:
        polled = queue.poll(count, lease=lease, wait=wait)
        if target.use_json:
            items = [item_to_json(item) for item in polled]
            echo_json({"lease": polled.id.hex() or None, "items": items})
        else:
            if polled.items and target.is_for_people:
                click.echo(f"lease {polled.id.hex()}")
            target.echo_items(polled.items)
        if not polled.items and target.is_for_people:
            click.echo(_why_nothing(queue.stats()), err=True)
        # Only now: echo has flushed, and would have raised if nobody read the output.
        removed = polled.remove() if then_remove else []
    if not all(removed):
        lost = counted(removed.count(False), "item")
        click.echo(f"The lease ended before {lost} could be removed.", err=True)
    if not polled.items or not all(removed):
        raise Exit(NEGATIVE)


def _why_nothing(stats: Stats) -> str:
    if not stats.paused_until_ms:
        return f"Nothing is ready in queue {stats.name!r}."
    at_ms = stats.paused_until_ms
    until = "it is resumed" if is_endless(at_ms) else to_time(at_ms)
    return (
        f"Queue {stats.name!r} is paused until {until}, with {counted(stats.ready, 'item')} ready. "
        f"To resume: queueber resume -q {stats.name}"
    )


@click.command()
@lease_argument
@click.option(
    "--lease",
    "for_seconds",
    type=lease_seconds,
    default=60,
    show_default=True,
    help="How long the items stay yours, from now.",
)
@queue_flags
def extend(target: Target, lease: bytes, for_seconds: float) -> None:
    """Make a lease last longer, counted from now.

    \b
    Example:
      queueber extend 0199f1c2a7e27cc2a3f1bb6a5d3c9e01 --lease 300

    Ends with 1 if the lease has ended already. With --json: {"extended": true}.
    """
    with target.open_queue() as queue:
        extended = queue.extend(for_seconds, lease=lease)
    reason = "the lease has ended, or is not a lease of this queue"
    target.echo_done(lease.hex(), "extended", reason, is_done=extended)
