"""Create, configure, describe, trim, close, fork and delete a topic."""

from typing import Any

import click

from queueber import Client
from queueber.cli.flags import confirm, count_flag, whole_number, yes_flag
from queueber.cli.output import counted, to_duration, to_time
from queueber.cli.target import Target, server_flags
from queueber.cli.topics.settings import settings_flags, settings_rows, to_arguments
from queueber.cli.topics.start_flags import start_flags, to_start
from queueber.errors import InvalidArgument, NotFound
from queueber.limits import TOPIC_PARTITIONS_MAX
from queueber.model import Source, TopicInfo

_PARTITIONS = count_flag(
    "--partitions",
    most=TOPIC_PARTITIONS_MAX,
    help="Logs that the topic consists of; messages of one key are in one of them.",
)
_NO_TOPIC = "there is no such topic"


@click.command()
@click.argument("name")
@_PARTITIONS
@click.option("--content-type", metavar="TYPE", help="What payloads are, for readers.")
@click.option("--alias", metavar="NAME", help="A second name of the topic.")
@settings_flags
@server_flags
def create(target: Target, name: str, **given: Any) -> None:
    """Create a topic, with or without settings.

    \b
    Examples:
      queueber topic create orders --partitions 4 --retention 604800
      queueber topic create prices --keeps-last-per-key

    'publish' creates a topic with default settings when it is first used: one partition, and
    messages are kept for ever. If the topic exists with the same settings nothing changes; if it
    has other settings the command fails. With --json: {"created": true}.
    """
    with target.connect() as client:
        created = client.create_topic(name, **to_arguments(given)) is not None
    text = f"{name}  {'created' if created else 'exists already, with these settings'}"
    target.echo({"created": created}, text)


@click.command()
@click.argument("name")
@_PARTITIONS
@click.option("--alias", metavar="NAME", help="A second name of the topic.")
@settings_flags
@server_flags
def configure(target: Target, name: str, **given: Any) -> None:
    """Change settings of a topic; the others stay as they are.

    \b
    Example:
      queueber topic configure orders --retention 86400 --partitions 8

    The number of partitions may grow. Prints the topic as 'topic describe' does.
    """
    arguments = to_arguments(given)
    if not arguments:
        raise InvalidArgument("there is nothing to change; give a setting, such as --retention")
    with target.connect() as client:
        client.configure_topic(name, **arguments)
        _echo_info(target, client.topic(name, must_exist=True).describe())


@click.command()
@click.argument("name")
@server_flags
def describe(target: Target, name: str) -> None:
    """Show a topic: its settings, and how far its partitions reach.

    \b
    Example:
      queueber topic describe orders --json | jq '.partitions[0].nextOffset'
    """
    with target.connect() as client:
        _echo_info(target, client.topic(name, must_exist=True).describe())


def _echo_info(target: Target, info: TopicInfo) -> None:
    rows = [
        ("created", to_time(info.created_at_ms)),
        ("content type", info.config.content_type or "none"),
        *([("alias", info.config.alias)] if info.config.alias else []),
        *settings_rows(info.config.settings),
        ("closed", "yes" if info.is_closed else "no"),
        *([("fork of", info.parent)] if info.parent else []),
        ("forks", f"{info.forks:,}"),
        ("groups", ", ".join(info.groups) or "none"),
        *[("source", _source(each)) for each in info.sources],
        *([("expires", to_time(info.expires_at_ms))] if info.expires_at_ms else []),
    ]
    for at, each in enumerate(info.partitions):
        reach = f"offsets {each.first_offset:,} to {each.next_offset:,}, {each.bytes:,} bytes"
        age = f", {to_duration(each.last_ms - each.oldest_ms)} long" if each.oldest_ms else ""
        rows.append((f"partition {at}", reach + age))
    target.echo_table((f"topic {info.name}", ""), rows, info)


def _source(source: Source) -> str:
    where = f" where {source.where}" if source.where else ""
    by = f" by {source.partition_by}" if source.partition_by else ""
    return f"{source.queue} on {source.on}{where}{by}, {source.payload}"


@click.command()
@click.argument("name")
@start_flags("--to", "Keep messages from here on: an offset, 'latest' or a time.")
@click.option("--partition", type=whole_number, help="Only of this one.  [default: all]")
@yes_flag
@server_flags
def trim(target: Target, name: str, partition: int | None, yes: bool, **given: Any) -> None:
    """Delete the oldest messages of a topic.

    \b
    Examples:
      queueber topic trim orders --to 2026-11-01T00:00Z --yes
      queueber topic trim orders --last 1000 --partition 0

    Asks for confirmation; in a script, without a terminal, it needs --yes. With --json:
    {"deleted": 12}.
    """
    to = to_start(given, {}, flag="to")
    if not to:
        raise InvalidArgument("say which messages stay: --to, --last or --since")
    if not yes and not confirm(f"Delete messages of topic {name!r}?"):
        target.echo_done(name, "trimmed", "you said no", is_done=False)
    with target.connect() as client:
        deleted = client.topic(name, must_exist=True).trim(partition=partition, **to)
    target.echo({"deleted": deleted}, f"{name}  {counted(deleted, 'message')} deleted")


@click.command()
@click.argument("name")
@server_flags
def close(target: Target, name: str) -> None:
    """Close a topic: it takes no more messages, and readers learn that it is over.

    \b
    Example:
      queueber topic close upload-17

    There is no way back. May be repeated. With --json: {"closed": true}.
    """
    with target.connect() as client:
        client.topic(name, must_exist=True).close()
    target.echo({"closed": True}, f"{name}  closed")


@click.command()
@click.argument("name")
@click.argument("new_name")
@click.option("--offset", type=whole_number, help="Share the messages before it.  [default: all]")
@click.option("--partition", type=whole_number, help="That of the offset.  [default: 0]")
@server_flags
def fork(
    target: Target, name: str, new_name: str, offset: int | None, partition: int | None
) -> None:
    """Create a topic that shares the messages of another one, without a copy.

    \b
    Example:
      queueber topic fork orders orders-experiment --offset 1000

    Both go on by themselves from there. With --json: {"forked": true}.
    """
    with target.connect() as client:
        client.topic(name, must_exist=True).fork(new_name, offset, partition=partition)
    target.echo({"forked": True}, f"{new_name}  created as a fork of {name}")


@click.command()
@click.argument("name")
@yes_flag
@server_flags
def delete(target: Target, name: str, yes: bool) -> None:
    """Delete a topic with all its messages and groups.

    \b
    Example:
      queueber topic delete orders --yes

    Asks for confirmation; in a script, without a terminal, it needs --yes. Ends with 1 if there is
    no such topic, or you say no. With --json: {"deleted": true}.
    """
    with target.connect() as client:
        reason = "" if yes else _why_not(client, name)
        deleted = not reason and client.delete_topic(name)
    target.echo_done(name, "deleted", reason or _NO_TOPIC, is_done=deleted)


def _why_not(client: Client, name: str) -> str:
    """Ask for confirmation; empty when the answer is yes."""
    try:
        info = client.topic(name, must_exist=True).describe()
    except NotFound:
        return _NO_TOPIC
    kept = sum(each.next_offset - each.first_offset for each in info.partitions)
    question = f"Delete topic {name!r} with {counted(kept, 'message')}?"
    return "" if confirm(question) else "you said no"
