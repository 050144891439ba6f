"""`queueber loads`: bulk loads of a queue that are not committed yet."""

import click

from queueber.cli.flags.target import ListByDefault, Target, client_flags, queue_flag
from queueber.cli.flags.types import whole_number
from queueber.cli.output.json_lines import echo_json
from queueber.cli.output.outcome import echo_done
from queueber.cli.output.text import echo_table, text_to_line, to_time
from queueber.model import LoadInfo


@click.group(cls=ListByDefault)
def loads() -> None:
    """List bulk loads that are not committed, and abort them.

    \b
    Examples:
      queueber loads -q images
      queueber loads abort nightly -q images

    A bulk load stages items, for example from Spark, and adds all of them when it is committed.
    """


@loads.command("list")
@queue_flag
@client_flags
def list_loads(target: Target, queue: str) -> None:
    """Show the loads of a queue that are not committed.

    \b
    Example:
      queueber loads list -q images --json | jq .rows

    For each: its epoch, state, batch, number of staged rows, when it began, and when the server
    drops it unless a call of the load arrives before.
    """
    with target.connect() as client:
        listed = client.queue(queue, must_exist=True).loads()
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
@click.option(
    "--epoch",
    type=whole_number,
    metavar="NUMBER",
    default=0,
    help="Epoch of the load. [default: 0]",
)
@queue_flag
@client_flags
def abort(target: Target, queue: str, name: str, epoch: int) -> None:
    """Drop a load and everything staged for it. Its tasks and its commit will fail.

    \b
    Example:
      queueber loads abort nightly -q images

    Ends with 1 if there is no such load, or it is committed. With --json: {"aborted": true}.
    """
    with target.connect() as client:
        aborted = client.queue(queue, must_exist=True).abort_load(name, epoch=epoch)
    reason = f"there is no such load in epoch {epoch}, or it is committed"
    echo_done(target, name, "aborted", reason, is_done=aborted)
