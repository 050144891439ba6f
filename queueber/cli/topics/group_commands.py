"""Groups of a topic: list, create and delete them, and move their cursors."""

from typing import Any

import click

from queueber.cli.flags import count_flag, seconds_up_to, whole_number
from queueber.cli.output import to_duration
from queueber.cli.queue_settings import settings_flags as lease_flags
from queueber.cli.queue_settings import to_arguments
from queueber.cli.target import Target, server_flags
from queueber.cli.topics.start_flags import start_flags, to_start
from queueber.errors import InvalidArgument
from queueber.limits import DELAY_MS_MAX, SECOND_MS
from queueber.model import GroupInfo, QueueSettings


@click.command()
@click.argument("name")
@server_flags
def groups(target: Target, name: str) -> None:
    """Show the groups of a topic, and how far behind they are.

    \b
    Example:
      queueber topic groups orders --json | jq '{name, lag}'

    'lag' is the number of messages that a group has not acknowledged, 'age' how long the oldest of
    them has been there. Cursors are the offsets where each partition goes on. The last column says
    what stops a group: that it is paused, or why its queue takes no message.
    """
    with target.connect() as client:
        listed = client.topic(name, must_exist=True).groups()
    headings = ("group", "kind", "lag", "age", "leased", "dead", "consumers", "cursors", "")
    target.echo_table(headings, map(_row, listed), *listed)


def _row(info: GroupInfo) -> tuple[str, ...]:
    return (
        info.name,
        info.settings.kind.value,
        f"{info.lag:,}",
        to_duration(info.lag_ms),
        f"{info.leased:,}",
        f"{info.dead:,}",
        ", ".join(info.consumers) or "none",
        " ".join(map(str, info.cursors)),
        "paused" if info.paused_until_ms else info.stopped_by,
    )


@click.command("create-group")
@click.argument("name")
@click.argument("group")
@click.option(
    "--kind",
    type=click.Choice(["ordered", "shared", "queue"]),
    default="ordered",
    show_default=True,
    help="One consumer in order; many that share the messages; or a queue that gets them.",
)
@click.option("--queue", help="The queue that gets the messages, of the last kind.")
@count_flag("--in-flight-max", least=0, help="Messages that may be leased at once; 0: no limit.")
@start_flags("--from", "An offset, 'earliest', 'latest' or a time.  [default: earliest]")
@lease_flags
@server_flags
def create_group(target: Target, name: str, group: str, **given: Any) -> None:
    """Create a group of a topic.

    \b
    Examples:
      queueber topic create-group orders billing
      queueber topic create-group orders mail --kind shared --lease 30 --attempts-max 5
      queueber topic create-group orders invoices --kind queue --queue invoices --from latest

    'tail --group' and subscriptions create a group when they first use it. The settings of leases
    are for groups of kind 'shared'. With --json: {"created": true}.
    """
    start = to_start(given, {})
    own = {key: given.pop(key) for key in ("kind", "in_flight_max")} | {"queue": target.queue}
    named = {key: value for key, value in own.items() if value is not None}
    settings: Any = to_arguments(given, QueueSettings())
    with target.connect() as client:
        topic = client.topic(name, must_exist=True)
        created = topic.create_group(group, **named, **settings, **start)
    text = f"{group}  {'created' if created else 'exists already, with these settings'}"
    target.echo({"created": created}, text)


@click.command("delete-group")
@click.argument("name")
@click.argument("group")
@server_flags
def delete_group(target: Target, name: str, group: str) -> None:
    """Delete a group of a topic: where it was is forgotten.

    \b
    Example:
      queueber topic delete-group orders billing

    The messages stay. Ends with 1 if there is no such group. With --json: {"deleted": true}.
    """
    with target.connect() as client:
        deleted = client.topic(name, must_exist=True).delete_group(group)
    target.echo_done(group, "deleted", "there is no such group", is_done=deleted)


@click.command()
@click.argument("name")
@click.argument("group")
@start_flags("--to", "An offset, 'earliest', 'latest' or a time.")
@click.option("--partition", type=whole_number, help="Only this one.  [default: all]")
@server_flags
def reset(target: Target, name: str, group: str, partition: int | None, **given: Any) -> None:
    """Move a group to another place of its topic, forward or back.

    \b
    Examples:
      queueber topic reset orders billing --to earliest
      queueber topic reset orders billing --since 3600
      queueber topic reset orders billing --to 1000 --partition 0

    With --json: {"reset": true}.
    """
    to = to_start(given, {}, flag="to")
    if not to:
        raise InvalidArgument("say where the group goes on: --to, --last or --since")
    with target.connect() as client:
        client.topic(name, must_exist=True).reset(group, partition=partition, **to)
    target.echo({"reset": True}, f"{group}  reset")


@click.command("pause-group")
@click.argument("name")
@click.argument("group")
@click.option(
    "--for",
    "for_seconds",
    type=seconds_up_to(DELAY_MS_MAX, is_zero_allowed=False),
    help="Length of the pause. [default: until 'resume-group']",
)
@server_flags
def pause_group(target: Target, name: str, group: str, for_seconds: float | None) -> None:
    """Deliver no messages to a group for a while.

    \b
    Examples:
      queueber topic pause-group orders billing
      queueber topic pause-group orders billing --for 600

    Its consumers stay, and what they have they may still acknowledge. A group of kind 'queue' adds
    nothing to its queue meanwhile. With --json: {"paused": true}.
    """
    with target.connect() as client:
        client.topic(name, must_exist=True).pause(group, for_seconds)
    seconds = for_seconds
    end = "until 'resume-group'" if seconds is None else f"for {to_duration(seconds * SECOND_MS)}"
    target.echo({"paused": True}, f"{group}  paused {end}")


@click.command("resume-group")
@click.argument("name")
@click.argument("group")
@server_flags
def resume_group(target: Target, name: str, group: str) -> None:
    """Deliver messages to a paused group again.

    \b
    Example:
      queueber topic resume-group orders billing

    Does nothing if the group is not paused. With --json: {"paused": false}.
    """
    with target.connect() as client:
        client.topic(name, must_exist=True).resume(group)
    target.echo({"paused": False}, f"{group}  resumed")
