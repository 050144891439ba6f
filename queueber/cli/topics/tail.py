"""`queueber topic tail`: messages as they are published, as `tail -f` prints lines."""

from typing import Any

import click

from queueber import Received, Subscription
from queueber.cli.flags import count_flag, whole_number
from queueber.cli.output import counted
from queueber.cli.target import Target, raw_flag, server_flags
from queueber.cli.topics.output import echo_messages
from queueber.cli.topics.start_flags import start_flags, to_start
from queueber.client.arguments.positions import StartOptions

_WRITTEN_TOGETHER_MAX = 1000


@click.command()
@click.argument("name")
@start_flags("--from", "An offset, 'earliest', 'latest' or a time.  [default: latest]")
@click.option("--group", help="Continue where this group stopped, and acknowledge what is printed.")
@click.option(
    "--kind",
    type=click.Choice(["ordered", "shared"]),
    default="ordered",
    show_default=True,
    help="Of the group: one consumer in order, or many that share the messages.",
)
@click.option("--partition", "partitions", type=whole_number, multiple=True, help="Only this one.")
@count_flag("--credits", default=1000, help="Messages that may be under way.")
@count_flag("--limit", help="End after so many messages.")
@click.option("--times", is_flag=True, help="Show when each message was published.")
@click.option("--must-exist", is_flag=True, help="Fail if there is no such topic.")
@raw_flag
@server_flags
def tail(
    target: Target,
    name: str,
    group: str | None,
    kind: Any,
    partitions: tuple[int, ...],
    credits: int,
    limit: int | None,
    times: bool,
    **given: Any,
) -> None:
    """Print messages of a topic as they are published, until Ctrl-C.

    \b
    Examples:
      queueber topic tail orders
      queueber topic tail orders --last 10 --times
      queueber topic tail orders --from earliest --raw | ./import
      queueber topic tail orders --group billing --json | ./bill

    It begins at the end, unless you say otherwise, and ends when the topic is closed. A lost
    connection is opened again, and no message is left out.

    With --group it begins where the group stopped; a new group begins with the earliest message.
    What was printed is acknowledged, so every message is printed at least once. If another consumer
    takes over an ordered group, the command ends with 4.
    """
    default: StartOptions = {"start": "earliest" if group else "latest"}
    start = to_start(given, default)
    printed = 0
    with target.connect() as client:
        topic = client.topic(name, must_exist=target.must_exist)
        with topic.subscribe(
            group=group, kind=kind, credits=credits, partitions=partitions, **start
        ) as subscription:
            while limit is None or printed < limit:
                most = _WRITTEN_TOGETHER_MAX if limit is None else limit - printed
                messages = _take(subscription, min(most, _WRITTEN_TOGETHER_MAX))
                if not messages:
                    break
                echo_messages(target, messages, times=times)
                printed += len(messages)
                # Only now: echo has flushed, and would have raised if nobody read the output.
                if group is not None:
                    for message in messages if kind == "shared" else messages[-1:]:
                        message.ack()
            missed = subscription.missed
    if missed:
        click.echo(f"Deleted before they were read: {counted(missed, 'message')}.", err=True)


def _take(subscription: Subscription, most: int) -> list[Received]:
    """The next messages: all that are there, and at least one; none if the topic is closed."""
    messages = []
    message = subscription.next()
    while message is not None:
        messages.append(message)
        message = subscription.next(0) if len(messages) < most else None
    return messages
