"""`queueber topics`: the topics of a server."""

import sys
from itertools import islice

import click
from click.exceptions import Exit

from queueber import Client
from queueber.cli.exits import NEGATIVE
from queueber.cli.flags import count_flag
from queueber.cli.output import echo_json
from queueber.cli.target import Target, server_flags
from queueber.errors import NotFound
from queueber.model import TopicInfo

_HEADINGS = ("topic", "partitions", "messages", "bytes", "groups", "")


@click.command()
@click.argument("prefix", default="")
@count_flag("--limit", help="Most topics to print.")
@click.option("--long", "-l", "is_long", is_flag=True, help="Show numbers of each topic, too.")
@server_flags
def topics(target: Target, prefix: str, limit: int | None, is_long: bool) -> None:
    """List the topics whose names begin with PREFIX, or all.

    \b
    Examples:
      queueber topics
      queueber topics shop/ --long
      queueber topics --json | jq -r .name

    With --long a table shows partitions, messages, bytes and groups, with one call for each topic.
    Ends with 1 if there is none. With --json: {"name": "orders"}, or with --long all that
    'topic describe' prints.
    """
    with target.connect() as client:
        names = islice(client.topics(prefix), min(limit or sys.maxsize, sys.maxsize))
        found = _show_long(target, client, list(names)) if is_long else 0
        for name in names if not is_long else ():
            found += 1
            target.echo({"name": name}, name)
    if not found:
        raise Exit(NEGATIVE)


def _show_long(target: Target, client: Client, names: list[str]) -> int:
    listed: list[TopicInfo] = []
    for name in names:
        try:
            listed.append(client.topic(name, must_exist=True).describe())
        except NotFound:  # it was deleted meanwhile
            continue
    if target.use_json:
        for info in listed:
            echo_json(info)
    elif listed:
        target.echo_table(_HEADINGS, map(_row, listed))
    return len(listed)


def _row(info: TopicInfo) -> tuple[str, ...]:
    messages = sum(each.next_offset - each.first_offset for each in info.partitions)
    size = sum(each.bytes for each in info.partitions)
    counts = (len(info.partitions), messages, size, len(info.groups))
    return (info.name, *(f"{each:,}" for each in counts), "closed" if info.is_closed else "")
