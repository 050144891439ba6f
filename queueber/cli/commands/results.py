"""`queueber results` and `readers`: results of completed items, and who has read how far."""

from collections.abc import Iterator

import click
from click.exceptions import Exit

from queueber import Queue
from queueber.cli.exits import NEGATIVE
from queueber.cli.flags.target import (
    ListByDefault,
    Target,
    check_exclusive,
    client_flags,
    queue_flag,
    raw_flag,
)
from queueber.cli.flags.types import whole_number
from queueber.cli.output.json_lines import echo_json, item_to_json
from queueber.cli.output.outcome import echo_done
from queueber.cli.output.text import counted, details_line, echo_lines, echo_table, to_line
from queueber.errors import InvalidArgument
from queueber.limits import SECOND_MS
from queueber.model import Result, Results

_PAGE_RESULTS = 1000


@click.command()
@click.option(
    "--from", "offset", type=whole_number, metavar="OFFSET", help="First offset. [default: 0]"
)
@click.option("--reader", metavar="NAME", help="Continue where this reader stopped.")
@click.option(
    "--limit", type=click.IntRange(min=1), metavar="NUMBER", help="Most results to print."
)
@click.option("--follow", is_flag=True, help="Wait for new results, until --limit or Ctrl-C.")
@raw_flag
@queue_flag
@client_flags
def results(
    target: Target,
    queue: str,
    offset: int | None,
    reader: str | None,
    limit: int | None,
    follow: bool,
    raw: bool,
) -> None:
    """Print results of completed items, oldest first.

    \b
    Examples:
      queueber results --from 1000 --limit 100
      queueber results --reader gallery --follow --raw | ./publish
      queueber results --json | jq -r .result

    Each line shows the offset, the id of the item and its result. An indented line below shows the
    attempt (from the second on), key, batch and attributes.

    A reader is a name of your choice, like a consumer group of one. What was printed is
    acknowledged page by page, so every result is printed at least once. From its first command on
    the queue keeps results for the reader, within the limits of the queue's settings. Delete
    readers that you do not need any more with 'readers drop'. Results that were deleted before you
    read them are counted on standard error.

    Ends with 1 if there are no results. Results that are not printable text are shown as json:"..."
    or base64:...; --raw prints them unchanged. With --json each is an object: {"offset": 0,
    "id": "...", "result": "text, or null", "resultBase64": "...", "completedAtMs": 1790000000000,
    "attempt": 1, "key": null, "batch": null, "attributes": {}}.
    """
    check_exclusive(raw=raw, json=target.use_json)
    if reader is not None and offset is not None:
        raise InvalidArgument(
            "a reader continues where it stopped; give --from or --reader, not both"
        )
    printed = 0
    with target.connect() as client:
        reading = client.queue(queue, must_exist=True)
        wait = client.server().poll_wait_ms_max / SECOND_MS if follow else None
        for page in _pages(reading, offset or 0, reader, limit, wait):
            if page.missed:
                click.echo(_gone(page.missed, is_reader=reader is not None), err=True)
            _echo(page, raw=raw, use_json=target.use_json)
            printed += len(page.results)
            # Only now: echo has flushed, and would have raised if nobody read the output.
            if reader is not None:
                reading.ack_results(reader, page.next_offset)
    if not printed:
        if not raw and not target.use_json:
            click.echo(f"There is no result in queue {queue!r} to read.", err=True)
        raise Exit(NEGATIVE)


def _gone(count: int, *, is_reader: bool) -> str:
    """Without a reader we cannot know whether somebody has read them."""
    if is_reader:
        return f"Deleted before they were read: {counted(count, 'result')}."
    return (
        f"Deleted: {counted(count, 'earlier result')}. All readers have acknowledged them, or they "
        "exceeded --result-age or --result-bytes-max of the queue."
    )


def _pages(
    queue: Queue, offset: int, reader: str | None, limit: int | None, follow_wait: float | None
) -> Iterator[Results]:
    """Pages until none is left, or for ever if `follow_wait` says how long to wait in each call.

    The first page comes at once, even an empty one: its acknowledgement registers a reader.
    """
    wait = 0.0
    while limit is None or limit > 0:
        size = _PAGE_RESULTS if limit is None else min(limit, _PAGE_RESULTS)
        page = queue.read_results(offset, reader=reader, limit=size, wait=wait)
        yield page
        if not page.results and follow_wait is None:
            return
        wait = follow_wait or 0.0
        offset = 0 if reader is not None else page.next_offset
        limit = None if limit is None else limit - len(page.results)


def _echo(page: Results, *, raw: bool, use_json: bool) -> None:
    if raw:
        click.echo(b"".join(each.result + b"\n" for each in page.results), nl=False)
    elif use_json:
        for each in page.results:
            echo_json(item_to_json(each))
    else:
        echo_lines(line for each in page.results for line in _lines(each))


def _lines(result: Result) -> tuple[str, str]:
    attempt = f"attempt {result.attempt}" if result.attempt > 1 else ""
    details = details_line(
        attempt, key=result.key, batch=result.batch, attributes=result.attributes
    )
    return f"{result.offset}  {result.id.hex()}  {to_line(result.result)}", details


@click.group(cls=ListByDefault)
def readers() -> None:
    """List readers of a queue's results, and drop them.

    \b
    Examples:
      queueber readers -q images
      queueber readers drop gallery -q images
    """


@readers.command("list")
@queue_flag
@client_flags
def list_readers(target: Target, queue: str) -> None:
    """Show each reader, and how far it has read.

    \b
    Example:
      queueber readers list -q images --json | jq .behind

    'offset' is the next result that the reader gets, 'behind' how many it has not read yet.
    """
    with target.connect() as client:
        found = client.queue(queue, must_exist=True).results_stats()
    readers = sorted(found.readers.items())
    listed = [(name, at, found.next_offset - at) for name, at in readers]
    if target.use_json:
        for name, at, behind in listed:
            echo_json({"reader": name, "offset": at, "behind": behind})
    else:
        rows = [(name, f"{at:,}", f"{behind:,}") for name, at, behind in listed]
        echo_table(("reader", "offset", "behind"), rows)


@readers.command()
@click.argument("name")
@queue_flag
@client_flags
def drop(target: Target, queue: str, name: str) -> None:
    """Delete a reader: the queue no longer keeps results for it.

    \b
    Example:
      queueber readers drop gallery -q images

    Ends with 1 if there is no such reader. With --json: {"dropped": true}.
    """
    with target.connect() as client:
        dropped = client.queue(queue, must_exist=True).drop_reader(name)
    echo_done(target, name, "dropped", "there is no such reader", is_done=dropped)
