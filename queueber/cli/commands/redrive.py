"""`queueber redrive`: dead letters become ready again."""

import click
from click.exceptions import Exit

from queueber.cli.exits import NEGATIVE
from queueber.cli.flags.target import Target, client_flags, queue_flag, some_ids_argument
from queueber.cli.output.outcome import echo_count
from queueber.cli.output.progress import with_progress
from queueber.errors import InvalidArgument


@click.command()
@some_ids_argument
@click.option("--all", "every", is_flag=True, help="All dead letters of the queue.")
@queue_flag
@client_flags
def redrive(target: Target, queue: str, ids: tuple[bytes, ...], every: bool) -> None:
    """Make dead letters ready again, with no failed attempts.

    \b
    Examples:
      queueber redrive --all -q images
      queueber redrive 0199f1c29b007d0aa1c07a8f0f1d2e3b

    Ends with 1 if an id is not that of a dead letter. With --json: {"redriven": 12}.
    """
    if bool(ids) == every:
        raise InvalidArgument("give the ids of dead letters, or --all")
    with target.connect() as client:
        redriving = client.queue(queue, must_exist=True)
        redriven = with_progress(
            client,
            queue,
            "Redriving",
            len(ids) or redriving.stats().dead,
            lambda: redriving.redrive(ids or None),
            lambda stats: stats.redriven_total,
        )
    missing = len(set(ids)) - redriven if ids else 0
    if missing > 0:
        others = "1 is no dead letter" if missing == 1 else f"{missing:,} are no dead letters"
        echo_count(target, "redriven", redriven, f"{others} of the queue")
        raise Exit(NEGATIVE)
    echo_count(target, "redriven", redriven, "" if redriven else "there are no dead letters")
