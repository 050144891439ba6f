"""`queueber stats` and `queueber queues`: the queues in numbers, and their settings."""

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import click
from click.exceptions import Exit

from queueber.cli.exits import NEGATIVE
from queueber.cli.options import Target, client_options, queue_option
from queueber.cli.output import counted, echo_json, echo_table, to_json
from queueber.client.client import Client
from queueber.errors import InvalidArgument, NotFound
from queueber.model import QueueSettings, Stats

F = TypeVar("F", bound=Callable[..., object])


def limit(value: object) -> int:
    """The type of an option: a number of 64 bits, which is what the wire can carry."""
    text = str(value)
    if not (text.isascii() and text.isdigit() and int(text) < 1 << 64):
        raise click.BadParameter(f"{text!r} is not a number from 0 to 2^64 - 1.")
    return int(text)


@click.command()
@queue_option
@client_options
def stats(target: Target, queue: str) -> None:
    """Show one queue in numbers.

    \b
    Example:
      queueber stats -q images

    With --json: an object with the fields of the wire, such as "inProgress" and "oldestAgeMs".
    """
    with target.connect() as client:
        found = _find(client, queue)
    if target.use_json:
        echo_json(to_json(found))
        return
    rows = [
        ("ready", f"{found.ready:,}"),
        ("delayed", f"{found.delayed:,}"),
        ("in progress", f"{found.in_progress:,}"),
        ("leases", f"{found.leases:,}"),
        ("bytes", f"{found.contents_bytes:,}"),
        ("oldest, seconds", f"{found.oldest_age_ms / 1000:,.1f}"),
        ("waiting polls", f"{found.waiting_polls:,}"),
        ("added", f"{found.added_total:,}"),
        ("polled", f"{found.polled_total:,}"),
        ("removed", f"{found.removed_total:,}"),
        ("expired", f"{found.expired_total:,}"),
        ("extended", f"{found.extended_total:,}"),
        ("items, limit", _limit(found.settings.items_max)),
        ("bytes, limit", _limit(found.settings.bytes_max)),
        ("item bytes, limit", _limit(found.settings.item_bytes_max)),
    ]
    echo_table((f"queue {found.name}", ""), rows)


class _ListUnlessNamed(click.Group):
    """`queues` alone, or with options only, is `queues list`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        is_help = bool(args) and args[0] in ctx.help_option_names
        if not args or (args[0].startswith("-") and not is_help):
            args = ["list", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_ListUnlessNamed)
def queues() -> None:
    """List the queues, create, configure and delete them.

    \b
    Examples:
      queueber queues
      queueber queues create images --items-max 100000
      queueber queues delete images
    """


@queues.command("list")
@client_options
def list_queues(target: Target) -> None:
    """Show every queue, in order of name.

    \b
    Example:
      queueber queues list --json | jq .ready
    """
    with target.connect() as client:
        listed = client.queues()
    if target.use_json:
        for each in listed:
            echo_json(to_json(each))
        return
    headings = ("queue", "ready", "delayed", "in progress", "bytes", "oldest, seconds")
    rows = [
        (
            each.name,
            f"{each.ready:,}",
            f"{each.delayed:,}",
            f"{each.in_progress:,}",
            f"{each.contents_bytes:,}",
            f"{each.oldest_age_ms / 1000:,.1f}",
        )
        for each in listed
    ]
    echo_table(headings, rows)


def _settings_options(command: F) -> F:
    """The flags of `QueueSettings`: None when not given."""
    for flag, text in (
        ("--item-bytes-max", "Largest contents of one item; 0: the server's limit."),
        ("--bytes-max", "Most bytes of contents; 0: no limit."),
        ("--items-max", "Most items; 0: no limit."),
    ):
        command = click.option(flag, type=limit, metavar="NUMBER", help=text)(command)
    return command


@queues.command()
@click.argument("name")
@_settings_options
@client_options
def create(target: Target, name: str, **given: int | None) -> None:
    """Create a queue, with limits if you like.

    \b
    Example:
      queueber queues create images --items-max 100000 --bytes-max 1000000000

    A queue is also created, without limits, when it is first used. To create one that exists with
    the same limits changes nothing; with others it is refused. With --json: {"created": true}.
    """
    settings = _changed(QueueSettings(), given)
    with target.connect() as client:
        created = client.create_queue(
            name,
            items_max=settings.items_max,
            bytes_max=settings.bytes_max,
            item_bytes_max=settings.item_bytes_max,
        )
    if target.use_json:
        echo_json({"created": created})
    else:
        click.echo(f"{name}  {'created' if created else 'exists already, with these settings'}")


@queues.command()
@click.argument("name")
@_settings_options
@client_options
def configure(target: Target, name: str, **given: int | None) -> None:
    """Change limits of a queue; others stay as they are.

    \b
    Example:
      queueber queues configure images --items-max 200000 --bytes-max 0

    Items that are over a new limit stay. With --json: the new settings.
    """
    if all(value is None for value in given.values()):
        raise InvalidArgument("give --items-max, --bytes-max or --item-bytes-max")
    with target.connect() as client:
        settings = _changed(_find(client, name).settings, given)
        client.configure_queue(
            name,
            items_max=settings.items_max,
            bytes_max=settings.bytes_max,
            item_bytes_max=settings.item_bytes_max,
        )
    if target.use_json:
        echo_json(to_json(settings))
    else:
        click.echo(
            f"{name}  items {_limit(settings.items_max)}, bytes {_limit(settings.bytes_max)}, "
            f"item bytes {_limit(settings.item_bytes_max)}"
        )


@queues.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@client_options
def delete(target: Target, name: str, yes: bool) -> None:
    """Delete a queue with all its items.

    \b
    Example:
      queueber queues delete images --yes

    Ends with 1 when there is no such queue, or you say no. With --json: {"deleted": true}.
    """
    with target.connect() as client:
        deleted = (yes or _is_sure(client, name)) and client.delete_queue(name)
    if target.use_json:
        echo_json({"deleted": deleted})
    else:
        click.echo(f"{name}  {'deleted' if deleted else 'not deleted'}")
    if not deleted:
        raise Exit(NEGATIVE)


def _is_sure(client: Client, name: str) -> bool:
    found = next((each for each in client.queues() if each.name == name), None)
    if found is None:
        return False
    items = counted(found.ready + found.delayed + found.in_progress, "item")
    try:
        return click.confirm(f"Delete queue {name!r} with {items}?", err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        click.echo(err=True)
        raise InvalidArgument("there is nobody to ask; give --yes to delete") from None


def _find(client: Client, name: str) -> Stats:
    """The queue as it is. Asking the server for the queue itself would create it."""
    for each in client.queues():
        if each.name == name:
            return each
    raise NotFound(f"there is no queue {name!r}")


def _changed(settings: QueueSettings, given: dict[str, int | None]) -> QueueSettings:
    return replace(settings, **{name: value for name, value in given.items() if value is not None})


def _limit(value: int) -> str:
    return f"{value:,}" if value else "none"
