"""`queueber results` and `readers`: results of completed items, and who has read how far."""

from collections.abc import Iterator

import click
from click.exceptions import Exit

from queueber import Queue
from queueber.cli.exits import NEGATIVE
from queueber.cli.flags import ListByDefault, count_flag, whole_number
from queueber.cli.output import counted
from queueber.cli.target import Target, queue_flags, raw_flag
from queueber.errors import InvalidArgument
from queueber.limits import SECOND_MS
from queueber.model import Results

_PAGE_RESULTS = 1000


@click.command()
@click.option(
    "--from", "offset", type=whole_number, metavar="OFFSET", help="First offset. [default: 0]"
)
@click.option("--reader", metavar="NAME", help="Continue where this reader stopped.")
@count_flag("--limit", help="Most results to print.")
@click.option("--follow", is_flag=True, help="Wait for new results, until --limit or Ctrl-C.")
@raw_flag
@queue_flags
def results(
    target: Target, offset: int | None, reader: str | None, limit: int | None, follow: bool
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
    if reader is not None and offset is not None:
        raise InvalidArgument(
            "a reader continues where it stopped; give --from or --reader, not both"
        )
    printed = 0
    with target.connect() as client:
        reading = client.queue(target.queue, must_exist=True)
        wait = client.server().poll_wait_ms_max / SECOND_MS if follow else None
        for page in _pages(reading, offset or 0, reader, limit, wait):
            if page.missed:
                click.echo(_gone(page.missed, is_reader=reader is not None), err=True)
            target.echo_items(page.results)
            printed += len(page.results)
            # Only now: echo has flushed, and would have raised if nobody read the output.
            if reader is not None:
                reading.ack_results(reader, page.next_offset)
    if not printed:
        if target.is_for_people:
            click.echo(f"There is no result in queue {target.queue!r} to read.", err=True)
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


@click.group(cls=ListByDefault)
def readers() -> None:
    """List readers of a queue's results, and drop them.

    \b
    Examples:
      queueber readers -q images
      queueber readers drop gallery -q images
    """


@readers.command("list")
@queue_flags
def list_readers(target: Target) -> None:
    """Show each reader, and how far it has read.

    \b
    Example:
      queueber readers list -q images --json | jq .behind

    'offset' is the next result that the reader gets, 'behind' how many it has not read yet.
    """
    with target.open_queue() as queue:
        found = queue.results_stats()
    headings = ("reader", "offset", "behind")
    listed = [(name, at, found.next_offset - at) for name, at in sorted(found.readers.items())]
    rows = [(name, f"{at:,}", f"{behind:,}") for name, at, behind in listed]
    target.echo_table(headings, rows, *(dict(zip(headings, each, strict=True)) for each in listed))


@readers.command()
@click.argument("name")
@queue_flags
def drop(target: Target, name: str) -> None:
    """Delete a reader: the queue no longer keeps results for it.

    \b
    Example:
      queueber readers drop gallery -q images

    Ends with 1 if there is no such reader. With --json: {"dropped": true}.
    """
    with target.open_queue() as queue:
        dropped = queue.drop_reader(name)
    target.echo_done(name, "dropped", "there is no such reader", is_done=dropped)
