"""`queueber poll` and `extend`: lease items, and keep the lease. `finish` has the rest."""

import click
from click.exceptions import Exit

from queueber import Item, Lease
from queueber.cli.commands.stats import is_endless
from queueber.cli.exits import NEGATIVE
from queueber.cli.flags.target import (
    Target,
    check_exclusive,
    client_flags,
    lease_argument,
    must_exist_flag,
    queue_flag,
    raw_flag,
)
from queueber.cli.flags.types import seconds, seconds_up_to
from queueber.cli.output.json_lines import echo_json, item_to_json
from queueber.cli.output.outcome import echo_done
from queueber.cli.output.text import counted, details_line, echo_lines, to_line, to_time
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
    help="Most items to lease.",
)
@click.option(
    "--lease",
    type=_lease_seconds,
    metavar="SECONDS",
    help="How long the items are yours. [default: the queue's --lease]",
)
@click.option(
    "--wait", type=seconds, default=0, help="How long to wait for the first item, if none is ready."
)
@click.option("--remove", "then_remove", is_flag=True, help="Remove the items after printing them.")
@raw_flag
@queue_flag
@must_exist_flag
@client_flags
def poll(
    target: Target,
    queue: str,
    must_exist: bool,
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

    The first line shows the lease; each further line shows the id of an item and its contents. An
    indented line below an item shows its attempt (from the second on), key, batch and attributes.

    Nobody else gets the items until the lease ends. Then they are ready again, unless you removed
    or completed them: see 'remove', 'complete', 'fail', 'release' and 'extend'. With --remove they
    are removed right after they are printed; if the reader of the output crashes, they are lost.

    A queue that does not exist is created, unless you give --must-exist. Ends with 1 if no item is
    ready, or the queue is paused.

    Contents that are not printable text are shown as json:"..." or base64:...; --raw prints them
    unchanged. With --json: {"lease": "...", "items": [{"id": "...", "contents": "text, or null",
    "contentsBase64": "...", "attempt": 1, "key": null, "attributes": {}, "batch": null}]}; "lease"
    is null if there were no items.
    """
    check_exclusive(raw=raw, json=target.use_json)
    with target.connect() as client:
        polling = client.queue(queue, must_exist=must_exist)
        polled = polling.poll(count, lease=lease, wait=wait)
        _echo(polled, raw=raw, use_json=target.use_json)
        if not polled.items and not raw and not target.use_json:
            click.echo(_why_nothing(polling.stats()), err=True)
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
    help="How long the items stay yours, from now.",
)
@queue_flag
@client_flags
def extend(target: Target, queue: str, lease: bytes, lease_seconds: float) -> None:
    """Make a lease last longer, counted from now.

    \b
    Example:
      queueber extend 0199f1c2a7e27cc2a3f1bb6a5d3c9e01 --lease 300

    Ends with 1 if the lease has ended already. With --json: {"extended": true}.
    """
    with target.connect() as client:
        extended = client.queue(queue, must_exist=True).extend(lease_seconds, lease=lease)
    reason = "the lease has ended, or is not a lease of this queue"
    echo_done(target, lease.hex(), "extended", reason, is_done=extended)
