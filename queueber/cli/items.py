"""`queueber poll`, `remove` and `extend`: what a worker does, by hand or in a script."""

import click
from click.exceptions import Exit

from queueber.cli.exits import NEGATIVE
from queueber.cli.options import (
    Target,
    check_exclusive,
    client_options,
    hex_id,
    queue_option,
    seconds,
)
from queueber.cli.output import counted, echo_json, to_base64, to_line, to_text
from queueber.client.client import Lease

_REMOVE_IDS_MAX = 1000
"""Ids in one call, far below what a server takes."""


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
    "--lease", type=seconds, default=60, show_default=True, help="How long they are yours."
)
@click.option("--wait", type=seconds, default=0, help="How long to wait for the first item.")
@click.option("--remove", "then_remove", is_flag=True, help="Remove the items once printed.")
@click.option("--raw", is_flag=True, help="Print the contents alone, each and a newline.")
@queue_option
@client_options
def poll(
    target: Target,
    queue: str,
    count: int,
    lease: float,
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

    The first line has the lease, the others each an id and its contents.

    Nobody else gets the items before the lease ends; then they are ready again, unless they were
    removed. With --remove they are removed as soon as they are printed, so what reads them must not
    lose them. Ends with 1 when there is nothing.

    Contents that are not text on one line are printed as json:"..." or base64:..., with --raw as
    they are. With --json: {"lease": "...", "items": [{"id": "...", "contents": "text, or null",
    "contentsBase64": "..."}]}; the lease is null when nothing came.
    """
    check_exclusive(raw=raw, json=target.use_json)
    with target.connect() as client:
        polled = client.queue(queue).poll(count, lease=lease, wait=wait)
        if target.use_json:
            _echo_lease_json(polled)
        elif raw:
            click.echo(b"".join(item.contents + b"\n" for item in polled), nl=False)
        elif polled.items:
            click.echo(f"lease {polled.id.hex()}")
            click.echo("\n".join(f"{i.id.hex()}  {to_line(i.contents)}" for i in polled))
        else:
            click.echo(f"Nothing is ready in queue {queue!r}.", err=True)
        # Everything is out of our hands now: echo flushes, and raises if nobody reads.
        removed = polled.remove() if then_remove else []
    if not all(removed):
        lost = counted(removed.count(False), "item")
        click.echo(f"The lease ended before {lost} could be removed.", err=True)
    if not polled.items or not all(removed):
        raise Exit(NEGATIVE)


def _echo_lease_json(polled: Lease) -> None:
    items = [
        {
            "id": item.id.hex(),
            "contents": to_text(item.contents),
            "contentsBase64": to_base64(item.contents),
        }
        for item in polled
    ]
    echo_json({"lease": polled.id.hex() or None, "items": items})


@click.command()
@click.argument("lease", type=hex_id)
@click.argument("ids", type=hex_id, nargs=-1, required=True, metavar="ID...")
@queue_option
@client_options
def remove(target: Target, queue: str, lease: bytes, ids: tuple[bytes, ...]) -> None:
    """Remove items that are done, under the lease that holds them.

    \b
    Example:
      queueber remove 0199f1c2a7e27cc2a3f1bb6a5d3c9e01 0199f1c29b007d0aa1c07a8f0f1d2e3b

    Prints what became of each. Ends with 1 when one was not removed: the lease has ended or does
    not hold it, and somebody else may have it. With --json: {"removed": ["..."], "notRemoved":
    []}.
    """
    outcomes: list[bool] = []
    with target.connect() as client:
        for start in range(0, len(ids), _REMOVE_IDS_MAX):
            outcomes += client.queue(queue).remove(ids[start : start + _REMOVE_IDS_MAX], lease)
    told = [(item_id.hex(), removed) for item_id, removed in zip(ids, outcomes, strict=True)]
    if target.use_json:
        echo_json(
            {
                "removed": [item_id for item_id, removed in told if removed],
                "notRemoved": [item_id for item_id, removed in told if not removed],
            }
        )
    else:
        lines = [f"{item_id}  {'removed' if done else 'not removed'}" for item_id, done in told]
        click.echo("\n".join(lines))
    if not all(outcomes):
        raise Exit(NEGATIVE)


@click.command()
@click.argument("lease", type=hex_id)
@click.option(
    "--lease",
    "lease_seconds",
    type=seconds,
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
        extended = client.queue(queue).extend(lease, lease_seconds)
    if target.use_json:
        echo_json({"extended": extended})
    else:
        click.echo(f"{lease.hex()}  {'extended' if extended else 'not extended'}")
    if not extended:
        raise Exit(NEGATIVE)
