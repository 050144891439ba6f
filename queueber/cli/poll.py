"""`queueber poll` and `extend`: leases, by hand or in a script. `outcomes` has how they end."""

import click
from click.exceptions import Exit

from queueber.cli.exits import NEGATIVE
from queueber.cli.finding import existing_queue
from queueber.cli.options import (
    Target,
    check_exclusive,
    client_options,
    lease_argument,
    queue_option,
    raw_option,
    seconds,
    seconds_up_to,
)
from queueber.cli.output import (
    counted,
    details_line,
    echo_json,
    echo_lines,
    item_to_json,
    to_line,
    to_time,
)
from queueber.cli.stats import is_endless
from queueber.client import Item, Lease
from queueber.limits import LEASE_MS_MAX
from queueber.model import Stats

_lease_seconds = seconds_up_to(LEASE_MS_MAX, is_zero_allowed=False)


@click.command()
@click.option(
    "--count",
    "-n",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="NUMBER",
    help="At most so many items.",
)
@click.option(
    "--lease",
    type=_lease_seconds,
    metavar="SECONDS",
    help="How long they are yours. [default: as the queue is configured]",
)
@click.option("--wait", type=seconds, default=0, help="How long to wait for the first item.")
@click.option("--remove", "then_remove", is_flag=True, help="Remove the items once printed.")
@raw_option
@queue_option
@client_options
def poll(
    target: Target,
    queue: str,
    count: int,
    lease: float | None,
    wait: float,
    then_remove: bool,
    raw: bool,
) -> None:
    """Lease items, and print them.

    \b
    Examples:
      queueber poll -n 10 --lease 300
      queueber poll --wait 30 --json
      queueber poll -n 100 --raw --remove | xargs -d '\\n' -n 1 ./work

    The first line has the lease, the others each an id and its contents. A line that is indented
    tells more of the item above it, if there is more: the attempt from the second on, its key,
    batch and attributes.

    Nobody else gets the items before the lease ends; then they are ready again, unless they were
    removed or completed. With --remove they are removed as soon as they are printed, so what reads
    them must not lose them. Ends with 1 when there is nothing, also while the queue is paused.

    A queue that is not there is created, without settings of its own.

    Contents that are not text on one line are printed as json:"..." or base64:..., with --raw as
    they are. With --json: {"lease": "...", "items": [{"id": "...", "contents": "text, or null",
    "contentsBase64": "...", "attempt": 1, "key": null, "attributes": {}, "batch": null}]}; the
    lease is null when nothing came.
    """
    check_exclusive(raw=raw, json=target.use_json)
    with target.connect() as client:
        polled = client.queue(queue).poll(count, lease=lease, wait=wait)
        _echo(polled, raw=raw, use_json=target.use_json)
        if not polled.items and not raw and not target.use_json:
            click.echo(_why_nothing(client.queue(queue).stats()), err=True)
        # Everything is out of our hands now: echo flushes, and raises if nobody reads.
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
        f"To go on: queueber resume -q {stats.name}"
    )


def _echo(polled: Lease, *, raw: bool, use_json: bool) -> None:
    if use_json:
        items = [item_to_json(item) for item in polled]
        echo_json({"lease": polled.id.hex() or None, "items": items})
    elif raw:
        click.echo(b"".join(item.contents + b"\n" for item in polled), nl=False)
    elif polled.items:
        click.echo(f"lease {polled.id.hex()}")
        echo_lines(line for item in polled for line in _lines(item))


def _lines(item: Item) -> tuple[str, str]:
    attempt = f"attempt {item.attempt}" if item.attempt > 1 else ""
    details = details_line(attempt, key=item.key, batch=item.batch, attributes=item.attributes)
    return f"{item.id.hex()}  {to_line(item.contents)}", details


@click.command()
@lease_argument
@click.option(
    "--lease",
    "lease_seconds",
    type=_lease_seconds,
    metavar="SECONDS",
    default=60,
    show_default=True,
    help="How long from now the items are yours.",
)
@queue_option
@client_options
def extend(target: Target, queue: str, lease: bytes, lease_seconds: float) -> None:
    """Let a lease end later, counted from now.

    \b
    Example:
      queueber extend 0199f1c2a7e27cc2a3f1bb6a5d3c9e01 --lease 300

    Ends with 1 when the lease has ended already. With --json: {"extended": true}.
    """
    with target.connect() as client:
        extended = existing_queue(client, queue).extend(lease_seconds, lease=lease)
    if target.use_json:
        echo_json({"extended": extended})
    else:
        not_extended = "not extended: the lease has ended, or is none of this queue"
        click.echo(f"{lease.hex()}  {'extended' if extended else not_extended}")
    if not extended:
        raise Exit(NEGATIVE)
