"""`queueber loads`: bulk loads of a queue that are not committed yet."""

import click

from queueber.cli.flags import ListByDefault, whole_number
from queueber.cli.output import text_to_line, to_time
from queueber.cli.target import Target, queue_flags
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
@queue_flags
def list_loads(target: Target) -> None:
    """Show the loads of a queue that are not committed.

    \b
    Example:
      queueber loads list -q images --json | jq .rows

    For each: its epoch, state, batch, number of staged rows, when it began, and when the server
    drops it unless a call of the load arrives before.
    """
    with target.open_queue() as queue:
        listed = queue.loads()
    headings = ("load", "epoch", "state", "batch", "rows", "began", "dropped at")
    target.echo_table(headings, map(_row, listed), *map(_to_json, listed))


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
@click.option("--epoch", type=whole_number, default=0, help="Epoch of the load. [default: 0]")
@queue_flags
def abort(target: Target, name: str, epoch: int) -> None:
    """Drop a load and everything staged for it. Its tasks and its commit will fail.

    \b
    Example:
      queueber loads abort nightly -q images

    Ends with 1 if there is no such load, or it is committed. With --json: {"aborted": true}.
    """
    with target.open_queue() as queue:
        aborted = queue.abort_load(name, epoch=epoch)
    reason = f"there is no such load in epoch {epoch}, or it is committed"
    target.echo_done(name, "aborted", reason, is_done=aborted)
