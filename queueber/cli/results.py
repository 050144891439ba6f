"""`queueber results` and `readers`: what was completed with, and who has read how far."""

from collections.abc import Iterator

import click
from click.exceptions import Exit

from queueber.cli.exits import NEGATIVE
from queueber.cli.finding import existing_queue
from queueber.cli.options import (
    ListUnlessNamed,
    Target,
    check_exclusive,
    client_options,
    number,
    queue_option,
    raw_option,
)
from queueber.cli.output import (
    counted,
    details_line,
    echo_json,
    echo_lines,
    echo_table,
    item_to_json,
    to_line,
)
from queueber.client import Queue
from queueber.errors import InvalidArgument
from queueber.limits import DAY_MS, SECOND_MS
from queueber.model import Result, Results

_PAGE_RESULTS = 1000
_FOLLOW_SECONDS = DAY_MS / SECOND_MS
"""How long to wait for the next result before asking anew; the client does so in rounds."""


@click.command()
@click.option(
    "--from", "offset", type=number, metavar="OFFSET", help="Where to begin. [default: 0]"
)
@click.option("--reader", metavar="NAME", help="Go on where this reader stopped, and note how far.")
@click.option("--limit", type=click.IntRange(min=1), metavar="NUMBER", help="At most so many.")
@click.option("--follow", is_flag=True, help="Wait for more, until --limit or Ctrl-C.")
@raw_option
@queue_option
@client_options
def results(
    target: Target,
    queue: str,
    offset: int | None,
    reader: str | None,
    limit: int | None,
    follow: bool,
    raw: bool,
) -> None:
    """Print the results of items that were completed, oldest first.

    \b
    Examples:
      queueber results --from 1000 --limit 100
      queueber results --reader gallery --follow --raw | ./publish
      queueber results --json | jq -r .result

    Each line has an offset, the item's id and its result. A line that is indented tells more of it,
    if there is more: the attempt from the second on, its key, its batch and its attributes.

    A reader has a name of your choice. What was printed is noted as read, page by page, so each
    result is printed at least once. From its first command on the queue keeps results for it, as
    long as the queue's settings allow; drop a reader that is not needed any more, with 'readers
    drop'. Results that are gone are counted on standard error.

    Ends with 1 when there is nothing. Results that are not text on one line are printed as
    json:"..." or base64:..., with --raw as they are. With --json each is an object: {"offset": 0,
    "id": "...", "result": "text, or null", "resultBase64": "...", "completedAtMs": 1790000000000,
    "attempt": 1, "key": null, "batch": null, "attributes": {}}.
    """
    check_exclusive(raw=raw, json=target.use_json)
    if reader is not None and offset is not None:
        raise InvalidArgument("a reader goes on where it stopped; give --from or --reader")
    printed = 0
    with target.connect() as client:
        reading = existing_queue(client, queue)
        for page in _pages(reading, offset or 0, reader, limit, follow=follow):
            if page.missed:
                click.echo(_gone(page.missed, is_reader=reader is not None), err=True)
            _echo(page, raw=raw, use_json=target.use_json)
            printed += len(page.results)
            # Only now: echo has flushed, and raises if nobody reads.
            if reader is not None:
                reading.ack_results(reader, page.next_offset)
    if not printed:
        if not raw and not target.use_json:
            click.echo(f"There is no result in queue {queue!r} to read.", err=True)
        raise Exit(NEGATIVE)


def _gone(count: int, *, is_reader: bool) -> str:
    """Only a reader is known not to have read them."""
    if is_reader:
        return f"Deleted before they were read: {counted(count, 'result')}."
    return (
        f"Gone: {counted(count, 'earlier result')}. All readers have acknowledged them, or they "
        "were beyond the limits of the queue."
    )


def _pages(
    queue: Queue, offset: int, reader: str | None, limit: int | None, *, follow: bool
) -> Iterator[Results]:
    """The first page at once, even if it is empty: it tells where a reader begins."""
    wait = 0.0
    while limit is None or limit > 0:
        size = _PAGE_RESULTS if limit is None else min(limit, _PAGE_RESULTS)
        page = queue.read_results(offset, reader=reader, limit=size, wait=wait)
        yield page
        if not page.results and not follow:
            return
        wait = _FOLLOW_SECONDS if follow else 0.0
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


@click.group(cls=ListUnlessNamed)
def readers() -> None:
    """List the readers of a queue's results, and drop them.

    \b
    Examples:
      queueber readers -q images
      queueber readers drop gallery -q images
    """


@readers.command("list")
@queue_option
@client_options
def list_readers(target: Target, queue: str) -> None:
    """Show every reader: the offset where it goes on, and how many results it is behind.

    \b
    Example:
      queueber readers list -q images --json | jq .behind
    """
    with target.connect() as client:
        log = existing_queue(client, queue).results_stats()
    listed = [(name, at, log.next_offset - at) for name, at in sorted(log.readers.items())]
    if target.use_json:
        for name, at, behind in listed:
            echo_json({"reader": name, "offset": at, "behind": behind})
    else:
        rows = [(name, f"{at:,}", f"{behind:,}") for name, at, behind in listed]
        echo_table(("reader", "offset", "behind"), rows)


@readers.command()
@click.argument("name")
@queue_option
@client_options
def drop(target: Target, queue: str, name: str) -> None:
    """Forget a reader: results no longer wait for it.

    \b
    Example:
      queueber readers drop gallery -q images

    Ends with 1 when there is no such reader. With --json: {"dropped": true}.
    """
    with target.connect() as client:
        dropped = existing_queue(client, queue).drop_reader(name)
    if target.use_json:
        echo_json({"dropped": dropped})
    else:
        click.echo(f"{name}  {'dropped' if dropped else 'not dropped: there is no such reader'}")
    if not dropped:
        raise Exit(NEGATIVE)
