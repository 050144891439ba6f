"""`queueber queues`: list, create, configure and delete queues."""

from typing import Any

import click

from queueber import Client
from queueber.cli.commands.stats import oldest
from queueber.cli.flags import ListByDefault, confirm, yes_flag
from queueber.cli.output import counted
from queueber.cli.queue_settings import settings_flags, settings_rows, to_arguments
from queueber.cli.target import Target, server_flags
from queueber.errors import InvalidArgument, NotFound
from queueber.model import QueueSettings, Stats


@click.group(cls=ListByDefault)
def queues() -> None:
    """List, create, configure and delete queues.

    \b
    Examples:
      queueber queues
      queueber queues create images --items-max 100000 --attempts-max 5
      queueber queues delete images
    """


@queues.command("list")
@server_flags
def list_queues(target: Target) -> None:
    """Show all queues, sorted by name.

    \b
    Example:
      queueber queues list --json | jq .ready

    'stats' shows more about one queue.
    """
    with target.connect() as client:
        listed = client.queues()
    headings = ("queue", "ready", "delayed", "leased", "dead", "bytes", "oldest, seconds", "")
    target.echo_table(headings, map(_row, listed), *listed)


def _row(stats: Stats) -> tuple[str, ...]:
    counts = (stats.ready, stats.delayed, stats.leased, stats.dead, stats.contents_bytes)
    paused = "paused" if stats.paused_until_ms else ""
    return (stats.name, *(f"{each:,}" for each in counts), oldest(stats), paused)


@queues.command()
@click.argument("name")
@settings_flags
@server_flags
def create(target: Target, name: str, **given: Any) -> None:
    """Create a queue, with or without settings.

    \b
    Examples:
      queueber queues create images --items-max 100000 --bytes-max 1000000000
      queueber queues create calls --lease 30 --attempts-max 5 --backoff 1,10,60

    'add' and 'poll' create a queue with default settings when it is first used. If the queue exists
    with the same settings nothing changes; if it has other settings the command fails. With --json:
    {"created": true}.
    """
    arguments = to_arguments(given, QueueSettings())
    with target.connect() as client:
        created = client.create_queue(name, **arguments)
    text = f"{name}  {'created' if created else 'exists already, with these settings'}"
    target.echo({"created": created}, text)


@queues.command()
@click.argument("name")
@settings_flags
@server_flags
def configure(target: Target, name: str, **given: Any) -> None:
    """Change settings of a queue; the others stay as they are.

    \b
    Example:
      queueber queues configure images --items-max 200000 --bytes-max 0

    Prints the new settings. Items above a new limit stay in the queue. If two people configure a
    queue at the same time, one may undo the change of the other.
    """
    if all(value is None for value in given.values()):
        raise InvalidArgument("there is nothing to change; give a setting, such as --items-max")
    with target.connect() as client:
        present = client.queue(name, must_exist=True).stats().settings
        client.configure_queue(name, **to_arguments(given, present))
        _echo_settings(target, client, name)


@queues.command()
@click.argument("name")
@server_flags
def show(target: Target, name: str) -> None:
    """Show the settings of a queue.

    \b
    Example:
      queueber queues show images --json

    With --json: one object, with names such as "leaseMs".
    """
    with target.connect() as client:
        _echo_settings(target, client, name)


def _echo_settings(target: Target, client: Client, name: str) -> None:
    settings = client.queue(name, must_exist=True).stats().settings
    target.echo_table((f"queue {name}", ""), settings_rows(settings), settings)


@queues.command()
@click.argument("name")
@yes_flag
@server_flags
def delete(target: Target, name: str, yes: bool) -> None:
    """Delete a queue with all its items and results.

    \b
    Example:
      queueber queues delete images --yes

    Asks for confirmation; in a script, without a terminal, it needs --yes. Ends with 1 if there is
    no such queue, or you say no. With --json: {"deleted": true}.
    """
    with target.connect() as client:
        reason = "" if yes else _why_not(client, name)
        deleted = not reason and client.delete_queue(name)
    target.echo_done(name, "deleted", reason or _NO_QUEUE, is_done=deleted)


_NO_QUEUE = "there is no such queue"


def _why_not(client: Client, name: str) -> str:
    """Ask for confirmation; empty when the answer is yes."""
    try:
        found = client.queue(name, must_exist=True).stats()
    except NotFound:
        return _NO_QUEUE
    items = counted(found.ready + found.delayed + found.leased + found.dead, "item")
    return "" if confirm(f"Delete queue {name!r} with {items}?") else "you said no"
