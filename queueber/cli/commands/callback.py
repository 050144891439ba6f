"""`queueber callback`: add an item once a batch is complete."""

from collections.abc import Mapping

import click

from queueber import CallbackInfo
from queueber.cli.flags import count_flag, pairs_flag
from queueber.cli.own_options import OwnFlags, own_options_flags
from queueber.cli.target import Target, queue_flags
from queueber.errors import InvalidArgument
from queueber.limits import PRIORITY_DEFAULT, PRIORITY_MAX


@click.command()
@click.argument("batch")
@click.argument("contents", required=False)
@click.option("--to", metavar="QUEUE", help="The queue that gets the item. [default: --queue]")
@click.option("--key", help="Skip the item if one with this key was added before; see 'add'.")
@count_flag(
    "--priority",
    least=0,
    most=PRIORITY_MAX,
    default=PRIORITY_DEFAULT,
    help=f"0 to {PRIORITY_MAX}; polls take higher priorities first.",
)
@pairs_flag("--attribute", "attributes", help="Metadata of the item.")
@own_options_flags
@click.option("--show", is_flag=True, help="Change nothing; show the callback that the batch has.")
@queue_flags
def callback(
    target: Target,
    batch: str,
    contents: str | None,
    to: str | None,
    key: str | None,
    priority: int,
    attributes: Mapping[str, str],
    own: OwnFlags,
    show: bool,
) -> None:
    """Add an item once every item of a batch is done or dead.

    \b
    Examples:
      queueber callback orders-17 'make the report' --to reports
      queueber callback orders-17 --show

    Call it after everything was added to the batch. The server adds the item exactly once, at once
    if the batch is complete already, and its attributes queueber.batch, queueber.added,
    queueber.done and queueber.dead say what the receipt says. A batch has one callback: until its
    item was added, another one takes its place.

    With --json: "itemId" of the item that was added, empty if it was not; "problem" if the queue
    did not take it.
    """
    if show == (contents is not None):
        raise InvalidArgument("give the contents of the item, or --show")
    with target.open_queue() as queue:
        if contents is None:
            found = queue.callback(batch)
        else:
            found = queue.when_complete(
                batch,
                contents.encode(),
                to=to,
                key=key,
                priority=priority,
                attributes=attributes,
                **own.given,
            )
    target.echo(found, f"{batch}  {_state(found)}")


def _state(found: CallbackInfo) -> str:
    if found.item_id:
        return f"item {found.item_id.hex()} was added to {found.to}"
    if found.problem:
        return f"an item is to be added to {found.to}: {found.problem}"
    return f"an item will be added to {found.to}"
