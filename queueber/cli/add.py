"""`queueber add`: items from arguments, from files, and in bulk from standard input."""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from io import BufferedReader
from itertools import chain
from pathlib import Path
from typing import cast

import click

from queueber.cli.bulk import Bulk, split_calls
from queueber.cli.options import Target, check_exclusive, client_options, queue_option, seconds
from queueber.cli.output import echo_json
from queueber.cli.split_stream import is_idle, split_stream
from queueber.errors import InvalidArgument, ResourceExhausted
from queueber.model import ServerInfo


@click.command()
@click.argument("contents", nargs=-1)
@click.option("--lines", is_flag=True, help="Each line of standard input is an item.")
@click.option("--null", is_flag=True, help="The same, but items end with a NUL byte.")
@click.option(
    "--file",
    "files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The whole file is an item. May be repeated.",
)
@click.option("--delay", type=seconds, default=0, help="How long the items stay hidden.")
@click.option("--quiet", is_flag=True, help="Print how many were added, not their ids.")
@queue_option
@client_options
def add(
    target: Target,
    queue: str,
    contents: tuple[str, ...],
    lines: bool,
    null: bool,
    files: tuple[Path, ...],
    delay: float,
    quiet: bool,
) -> None:
    """Add items, and print their ids in order, one a line.

    \b
    Examples:
      queueber add 'do this' 'and that'
      queueber add --lines --quiet < jobs.txt
      find . -name '*.png' -print0 | queueber add --null -q images --delay 60

    The newline at the end of a line is not part of the item, and empty lines are skipped. What an
    argument or a file holds is taken as it is. With --json each id is an object, {"id": "..."}, and
    with --quiet the count is one, {"added": 2}.

    Items are sent in calls of up to 1000. A call adds all its items or none; when one fails, the
    message says how many items were added.
    """
    check_exclusive(lines=lines, null=null)
    if not (contents or files or lines or null):
        raise InvalidArgument("there is nothing to add; give contents, --file, --lines or --null")
    stream = cast("BufferedReader", sys.stdin.buffer) if lines or null else None
    with target.connect() as client, contextlib.ExitStack() as stack:
        show: Callable[[int, int], None] = _no_progress
        # Ids on the same terminal would run through the bar.
        if stream and sys.stderr.isatty() and (quiet or not sys.stdout.isatty()):
            from queueber.cli.progress import Bar

            show = stack.enter_context(Bar()).advance

        def on_added(ids: list[bytes], byte_count: int) -> None:
            if not quiet:
                _echo_ids(ids, use_json=target.use_json)
            show(len(ids), byte_count)

        bulk = Bulk(client.queue(queue), delay, _idleness(stream), on_added)
        bulk.run(_batches(client.server(), contents, files, stream, b"\0" if null else b"\n"))
    if quiet and target.use_json:
        echo_json({"added": bulk.added})
    elif quiet:
        click.echo(bulk.added)


def _batches(
    server: ServerInfo,
    contents: tuple[str, ...],
    files: tuple[Path, ...],
    stream: BufferedReader | None,
    end: bytes,
) -> Iterator[list[bytes]]:
    """Everything there is to add, a call at a time: arguments, then files, then the stream."""
    item_bytes_max = server.item_bytes_max
    given = chain(map(os.fsencode, contents), (_read_file(file, item_bytes_max) for file in files))
    yield from split_calls(given, server.message_bytes_max)
    if stream is not None:
        for items in split_stream(stream, end, item_bytes_max):
            yield from split_calls(items, server.message_bytes_max)


def _read_file(file: Path, bytes_max: int) -> bytes:
    with file.open("rb") as opened:
        contents = opened.read(bytes_max + 1)
    if len(contents) > bytes_max:
        raise ResourceExhausted(f"{file} has more than {bytes_max} bytes, the limit of an item")
    return contents


def _idleness(stream: BufferedReader | None) -> Callable[[], bool]:
    return (lambda: is_idle(stream)) if stream is not None else (lambda: False)


def _no_progress(_items: int, _byte_count: int) -> None:
    pass


def _echo_ids(ids: list[bytes], *, use_json: bool) -> None:
    # One write for all: a write for each would take longer than adding them.
    start, end = ('{"id": "', '"}') if use_json else ("", "")
    click.echo("\n".join(f"{start}{each.hex()}{end}" for each in ids))
