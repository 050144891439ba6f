"""`queueber loads`: the loads of a queue that are under way."""

import click
from click.exceptions import Exit

from queueber.cli.exits import NEGATIVE
from queueber.cli.finding import existing_queue
from queueber.cli.options import ListUnlessNamed, Target, client_options, number, queue_option
from queueber.cli.output import echo_json, echo_table, text_to_line, to_time
from queueber.model import LoadInfo


@click.group(cls=ListUnlessNamed)
def loads() -> None:
    """List the loads of a queue that are not committed, and drop them.

    \b
    Examples:
      queueber loads -q images
      queueber loads abort nightly -q images
    """


@loads.command("list")
@queue_option
@client_options
def list_loads(target: Target, queue: str) -> None:
    """Show every load: its epoch, how far it is, how many rows are staged, when it began, and when
    it is dropped unless somebody calls.

    \b
    Example:
      queueber loads list -q images --json | jq .rows
    """
    with target.connect() as client:
        listed = existing_queue(client, queue).loads()
    if target.use_json:
        for each in listed:
            echo_json(_to_json(each))
    else:
        headings = ("load", "epoch", "state", "batch", "rows", "began", "dropped at")
        echo_table(headings, [_row(each) for each in listed])


def _to_json(load: LoadInfo) -> dict[str, object]:
    return {
        "load": load.ref.name,
        "epoch": load.ref.epoch,
        "state": load.state.value,
        "batch": load.batch or None,
        "rows": load.rows,
        "startedAtMs": load.started_at_ms,
        "expiresAtMs": load.expires_at_ms,
        "directory": load.directory,
    }


def _row(load: LoadInfo) -> tuple[str, ...]:
    return (
        text_to_line(load.ref.name),
        f"{load.ref.epoch:,}",
        load.state.value,
        text_to_line(load.batch),
        f"{load.rows:,}",
        to_time(load.started_at_ms),
        to_time(load.expires_at_ms),
    )


@loads.command()
@click.argument("name")
@click.option("--epoch", type=number, default=0, show_default=True, help="Of the load.")
@queue_option
@client_options
def abort(target: Target, queue: str, name: str, epoch: int) -> None:
    """Drop all that was staged of a load. Its tasks fail, and whoever would commit it, too.

    \b
    Example:
      queueber loads abort nightly -q images

    Ends with 1 when there is no such load, or it is committed. With --json: {"aborted": true}.
    """
    with target.connect() as client:
        aborted = existing_queue(client, queue).abort_load(name, epoch=epoch)
    if target.use_json:
        echo_json({"aborted": aborted})
    else:
        reason = f"no such load is under way in epoch {epoch}"
        click.echo(f"{name}  {'aborted' if aborted else f'not aborted: {reason}'}")
    if not aborted:
        raise Exit(NEGATIVE)
