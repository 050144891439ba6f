"""`queueber queues`: list them, create, configure and delete them."""

from typing import Any

import click
from click.exceptions import Exit

from queueber.cli.asking import is_sure, yes_option
from queueber.cli.exits import NEGATIVE
from queueber.cli.finding import find_stats
from queueber.cli.options import ListUnlessNamed, Target, client_options
from queueber.cli.output import counted, echo_json, echo_table, to_json
from queueber.cli.settings import settings_options, settings_rows, to_arguments
from queueber.cli.stats import oldest
from queueber.client import Client
from queueber.errors import InvalidArgument, NotFound
from queueber.model import QueueSettings


@click.group(cls=ListUnlessNamed)
def queues() -> None:
    """List the queues, create, configure and delete them.

    \b
    Examples:
      queueber queues
      queueber queues create images --items-max 100000 --attempts-max 5
      queueber queues delete images
    """


@queues.command("list")
@client_options
def list_queues(target: Target) -> None:
    """Show every queue, in order of name.

    \b
    Example:
      queueber queues list --json | jq .ready

    'stats' tells more of one queue.
    """
    with target.connect() as client:
        listed = client.queues()
    if target.use_json:
        for each in listed:
            echo_json(to_json(each))
        return
    headings = ("queue", "ready", "delayed", "leased", "dead", "bytes", "oldest, seconds", "")
    rows = [
        (
            each.name,
            f"{each.ready:,}",
            f"{each.delayed:,}",
            f"{each.leased:,}",
            f"{each.dead:,}",
            f"{each.contents_bytes:,}",
            oldest(each),
            "paused" if each.paused_until_ms else "",
        )
        for each in listed
    ]
    echo_table(headings, rows)


@queues.command()
@click.argument("name")
@settings_options
@client_options
def create(target: Target, name: str, **given: Any) -> None:
    """Create a queue, with settings if you like.

    \b
    Examples:
      queueber queues create images --items-max 100000 --bytes-max 1000000000
      queueber queues create calls --lease 30 --attempts-max 5 --backoff 1,10,60

    A queue is also created, without settings of its own, when it is first used. To create one that
    exists with the same settings changes nothing; with others it is refused. With --json:
    {"created": true}.
    """
    arguments = to_arguments(given, QueueSettings())
    with target.connect() as client:
        created = client.create_queue(name, **arguments)
    if target.use_json:
        echo_json({"created": created})
    else:
        click.echo(f"{name}  {'created' if created else 'exists already, with these settings'}")


@queues.command()
@click.argument("name")
@settings_options
@client_options
def configure(target: Target, name: str, **given: Any) -> None:
    """Change settings of a queue; those that are not named stay as they are.

    \b
    Example:
      queueber queues configure images --items-max 200000 --bytes-max 0

    Items that are over a new limit stay. Prints the new settings. Of two who configure a queue at
    once, one may undo what the other did.
    """
    if all(value is None for value in given.values()):
        raise InvalidArgument("there is nothing to change; give a setting, such as --items-max")
    with target.connect() as client:
        client.configure_queue(name, **to_arguments(given, find_stats(client, name).settings))
        _echo_settings(target, client, name)


@queues.command()
@click.argument("name")
@client_options
def show(target: Target, name: str) -> None:
    """Show the settings of a queue.

    \b
    Example:
      queueber queues show images --json

    With --json: an object with the fields of the wire, such as "leaseMs".
    """
    with target.connect() as client:
        _echo_settings(target, client, name)


def _echo_settings(target: Target, client: Client, name: str) -> None:
    settings = find_stats(client, name).settings
    if target.use_json:
        echo_json(to_json(settings))
    else:
        echo_table((f"queue {name}", ""), settings_rows(settings))


@queues.command()
@click.argument("name")
@yes_option
@client_options
def delete(target: Target, name: str, yes: bool) -> None:
    """Delete a queue with all its items and results.

    \b
    Example:
      queueber queues delete images --yes

    Asks first; without a terminal to ask on it needs --yes. Ends with 1 when there is no such
    queue, or you say no. With --json: {"deleted": true}.
    """
    with target.connect() as client:
        reason = "" if yes else _why_not(client, name)
        deleted = not reason and client.delete_queue(name)
    if target.use_json:
        echo_json({"deleted": deleted})
    else:
        click.echo(f"{name}  {'deleted' if deleted else f'not deleted: {reason or _NO_QUEUE}'}")
    if not deleted:
        raise Exit(NEGATIVE)


_NO_QUEUE = "there is no such queue"


def _why_not(client: Client, name: str) -> str:
    """Ask; empty when the queue is to be deleted."""
    try:
        found = find_stats(client, name)
    except NotFound:
        return _NO_QUEUE
    items = counted(found.ready + found.delayed + found.leased + found.dead, "item")
    return "" if is_sure(f"Delete queue {name!r} with {items}?") else "you said no"
