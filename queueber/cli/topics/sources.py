"""Add and drop the sources of a topic: queues whose changes it gets."""

from typing import cast

import click

from queueber.cli.output import counted
from queueber.cli.target import Target, server_flags
from queueber.client.arguments.sources import AnyOn, AnyPayload

_ON = click.Choice(["insert", "update", "delete"])


@click.command("add-source")
@click.argument("name")
@click.argument("source", metavar="QUEUE")
@click.option("--on", type=_ON, required=True, help="Which kind of change it is about.")
@click.option("--where", default="", metavar="FILTER", help="Only changes that it matches.")
@click.option("--partition-by", default="", metavar="FIELDS", help="What chooses the partition.")
@click.option(
    "--payload",
    type=click.Choice(["key", "full", "diff"]),
    default="key",
    show_default=True,
    help="What a message holds: the item's key, its contents, or what changed.",
)
@server_flags
def add_source(
    target: Target, name: str, source: str, on: str, where: str, partition_by: str, payload: str
) -> None:
    """Publish changes of a queue's items to a topic, each in the write that makes it.

    \b
    Examples:
      queueber topic add-source events orders --on insert --payload full
      queueber topic add-source alarms orders --on delete --where "item.change = 'dead'"

    An insert is an item that was added; an update one that failed, was released, expired, was
    redriven or rescheduled; a delete one that was completed, removed, cancelled or purged, or died.
    If the same source exists nothing changes. With --json: {"added": true}.
    """
    with target.connect() as client:
        added = client.topic(name, must_exist=True).add_source(
            source,
            on=cast("AnyOn", on),
            where=where,
            partition_by=partition_by,
            payload=cast("AnyPayload", payload),
        )
    text = f"gets {on}s of {source}" + ("" if added else " already")
    target.echo({"added": added}, f"{name}  {text}")


@click.command("drop-source")
@click.argument("name")
@click.argument("source", metavar="QUEUE")
@click.option("--on", type=_ON, help="Only this kind of change.  [default: all]")
@server_flags
def drop_source(target: Target, name: str, source: str, on: str | None) -> None:
    """Publish changes of a queue to a topic no more. What was published stays.

    \b
    Example:
      queueber topic drop-source events orders --on insert

    With --json: {"dropped": 1}.
    """
    with target.connect() as client:
        topic = client.topic(name, must_exist=True)
        dropped = topic.drop_source(source, on=cast("AnyOn | None", on))
    target.echo({"dropped": dropped}, f"{name}  {counted(dropped, 'source')} dropped")
