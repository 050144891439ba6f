"""`queueber forget`: forget complete batches before their time."""

import click
from click.exceptions import Exit

from queueber.cli.exits import NEGATIVE
from queueber.cli.flags import seconds_up_to
from queueber.cli.target import Target, queue_flags
from queueber.errors import InvalidArgument
from queueber.limits import BATCH_KEEP_MS_MAX


@click.command("forget")
@click.argument("batches", nargs=-1)
@click.option(
    "--unchanged-for",
    type=seconds_up_to(BATCH_KEEP_MS_MAX),
    help="Instead of names: all complete batches that did not change for so long.",
)
@queue_flags
def forget_batches(target: Target, batches: tuple[str, ...], unchanged_for: float | None) -> None:
    """Forget complete batches, with their receipts.

    \b
    Examples:
      queueber forget order-17 -q orders
      queueber forget --unchanged-for 86400 -q orders

    A queue forgets a batch by itself some time after its end ('queues configure --batch-keep'). One
    with live items cannot be forgotten. Ends with 1 if the queue knows none of the batches that are
    named. With --json: {"forgotten": 1}.
    """
    if bool(batches) == (unchanged_for is not None):
        raise InvalidArgument("give names of batches, or --unchanged-for")
    with target.open_queue() as queue:
        if unchanged_for is None:
            forgotten = sum(queue.forget_batch(each) for each in batches)
        else:
            forgotten = queue.forget_batches(unchanged_for=unchanged_for)
    noun = "batch" if forgotten == 1 else "batches"
    target.echo({"forgotten": forgotten}, f"{forgotten:,} {noun} forgotten")
    if batches and not forgotten:
        raise Exit(NEGATIVE)
