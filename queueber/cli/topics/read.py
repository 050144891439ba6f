"""`queueber topic read`: messages of a topic, from a place on."""

from collections.abc import Iterator
from typing import Any

import click
from click.exceptions import Exit

from queueber import MessagePage, Topic
from queueber.cli.exits import NEGATIVE
from queueber.cli.flags import count_flag, whole_number
from queueber.cli.output import counted
from queueber.cli.target import Target, raw_flag, server_flags
from queueber.cli.topics.output import echo_messages
from queueber.cli.topics.start_flags import place, start_flags, to_start
from queueber.client.arguments.positions import StartOptions
from queueber.errors import InvalidArgument

_PAGE_MESSAGES = 1000


@click.command()
@click.argument("name")
@start_flags("--from", "An offset, 'earliest', 'latest' or a time.  [default: earliest]")
@click.option("--until", type=place, metavar="PLACE", help="End before this offset or time.")
@click.option("--partition", type=whole_number, help="Only this one.  [default: all, in turn]")
@count_flag("--limit", help="Most messages to print.")
@click.option("--times", is_flag=True, help="Show when each message was published.")
@raw_flag
@server_flags
def read(
    target: Target,
    name: str,
    until: Any,
    partition: int | None,
    limit: int | None,
    times: bool,
    **given: Any,
) -> None:
    """Print messages of a topic, oldest first.

    \b
    Examples:
      queueber topic read orders --last 10
      queueber topic read orders --from 1000 --limit 100 --partition 2
      queueber topic read orders --since 3600 --times
      queueber topic read orders --from 2026-11-17T10:00Z --until 2026-11-17T11:00Z --json

    Each line shows PARTITION/OFFSET and the payload. An indented line below shows key and
    attributes. 'topic tail' goes on when it is at the end. An offset that is not kept any more
    begins with the oldest message; what was missed is counted on standard error.

    Ends with 1 if there are no messages. Payloads that are not printable text are shown as
    json:"..." or base64:...; --raw prints them unchanged. With --json each is an object:
    {"partition": 0, "offset": 17, "payload": "text, or null", "payloadBase64": "...", "key": null,
    "attributes": {}, "id": "...", "timestampMs": 1790000000000, "sequence": 4711}.
    """
    start = to_start(given, {"start": "earliest"})
    end = _to_end(until)
    printed = 0
    with target.connect() as client:
        topic = client.topic(name, must_exist=True)
        count = len(topic.describe().partitions)
        for each in range(count) if partition is None else [partition]:
            left = None if limit is None else limit - printed
            for page in _pages(topic, each, start, end, left):
                if page.missed:
                    click.echo(f"Deleted: {counted(page.missed, 'earlier message')}.", err=True)
                echo_messages(target, page, times=times)
                printed += len(page)
    if not printed:
        if target.is_for_people:
            click.echo(f"There is no message in topic {name!r} to read.", err=True)
        raise Exit(NEGATIVE)


def _to_end(until: Any) -> dict[str, Any]:
    if until is None:
        return {}
    if isinstance(until, str):
        raise InvalidArgument(f"--until: {until!r} is neither an offset nor a time")
    return {"end_offset": until} if isinstance(until, int) else {"end_time": until}


def _pages(
    topic: Topic, partition: int, start: StartOptions, end: dict[str, Any], limit: int | None
) -> Iterator[MessagePage]:
    while limit is None or limit > 0:
        size = _PAGE_MESSAGES if limit is None else min(limit, _PAGE_MESSAGES)
        page = topic.read(partition, limit=size, **start, **end)
        yield page
        if not page:
            return
        start = {"start": page.next_offset, "moves": True}
        limit = None if limit is None else limit - len(page)
