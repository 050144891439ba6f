"""`queueber add`: the command. Its input is in `add_input`, the calls are made in `bulk`."""

import contextlib
import sys
from collections.abc import Callable
from pathlib import Path

import click

from queueber.cli.add_input import AddInput
from queueber.cli.bulk import Bulk
from queueber.cli.new_calls import CommonOptions
from queueber.cli.options import Target, client_options, number, queue_option, seconds_up_to
from queueber.cli.output import counted, echo_json
from queueber.client import AddedIds
from queueber.errors import InvalidArgument
from queueber.limits import DELAY_MS_MAX, PRIORITY_DEFAULT, PRIORITY_MAX


def attribute(value: object) -> tuple[str, str]:
    """The type of an option."""
    name, equals, text = str(value).partition("=")
    if not name or not equals:
        raise click.BadParameter(f"{value!r} is not NAME=VALUE.")
    return name, text


@click.command()
@click.argument("contents", nargs=-1)
@click.option("--lines", is_flag=True, help="Each line of standard input is an item.")
@click.option("--null", is_flag=True, help="The same, but items end with a NUL byte.")
@click.option("--jsonl", is_flag=True, help="Each line of standard input is a JSON object.")
@click.option(
    "--file",
    "files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The whole file is an item. May be repeated.",
)
@click.option(
    "--delay",
    type=seconds_up_to(DELAY_MS_MAX),
    default=0,
    help="How long the items stay hidden.",
)
@click.option(
    "--priority",
    type=click.IntRange(0, PRIORITY_MAX),
    default=PRIORITY_DEFAULT,
    show_default=True,
    metavar="NUMBER",
    help=f"0 to {PRIORITY_MAX}; higher ones are polled first.",
)
@click.option("--key", help="Do not add the item if one with this key came lately.")
@click.option(
    "--attribute",
    "attributes",
    type=attribute,
    multiple=True,
    metavar="NAME=VALUE",
    help="Goes with each item. May be repeated.",
)
@click.option("--batch", metavar="NAME", help="What the items belong to; see 'receipt'.")
@click.option("--producer", metavar="ID", help="Repeat the command safely under this name.")
@click.option(
    "--epoch",
    type=number,
    metavar="NUMBER",
    help="Of the producer; a greater one begins anew. [default: 1]",
)
@click.option("--quiet", is_flag=True, help="Print how many were added, not their ids.")
@queue_option
@client_options
def add(
    target: Target,
    queue: str,
    contents: tuple[str, ...],
    lines: bool,
    null: bool,
    jsonl: bool,
    files: tuple[Path, ...],
    delay: float,
    priority: int,
    key: str | None,
    attributes: tuple[tuple[str, str], ...],
    batch: str | None,
    producer: str | None,
    epoch: int | None,
    quiet: bool,
) -> None:
    """Add items, and print their ids in order, one a line.

    \b
    Examples:
      queueber add 'do this' 'and that' --priority 9
      queueber add 'pay 17' --key order-17 --attribute trace=a1b2
      queueber add --lines --quiet --batch night-run < jobs.txt
      queueber add --lines --quiet --producer load-2026-11-16 < jobs.txt
      find . -name '*.png' -print0 | queueber add --null -q images --delay 60
      echo '{"contents": "pay 17", "key": "order-17"}' | queueber add --jsonl

    The newline at the end of a line is not part of the item, and empty lines are skipped. What an
    argument or a file holds is taken as it is. With --json each id is an object, {"id": "..."}, and
    with --quiet the count is one, {"added": 2}.

    With --jsonl a line has "contents" (text) or "contentsBase64", and may have "key", "priority",
    "delay" (seconds) and "attributes" (an object of strings); what it leaves out is as the options
    say. An item as 'poll --json' or 'peek --json' print it may be such a line: its "id", "attempt",
    "batch" and the like are ignored.

    An item whose key was there already is not added, and its id is that of the first; with --json
    it has "duplicate": true.

    Items are sent in calls of up to 1000. A call adds all its items or none; when one fails, the
    message says how many items were added.

    With --producer the command may be repeated after a crash, with the same input and options: what
    was added is not added twice. Calls are then filled up before they are sent. The server compares
    numbers, not contents, so other input needs another producer, or a greater epoch, which also
    shuts out whoever still adds in an older one. It forgets a producer after 7 days of silence. The
    ids of what was added long before are not printed.
    """
    if epoch is not None and producer is None:
        raise InvalidArgument("--epoch is that of a producer; give --producer, too")
    common = CommonOptions(delay, priority, dict(attributes), batch, key)
    given = AddInput(contents, files, lines, null, jsonl, is_steady=producer is not None)
    given.check(common)
    with target.connect() as client, contextlib.ExitStack() as stack:
        on_progress: Callable[[int, int], None] = _no_progress
        # AddedIds on the same terminal would run through the bar.
        if given.has_stream and sys.stderr.isatty() and (quiet or not sys.stdout.isatty()):
            from queueber.cli.progress import InputBar

            on_progress = stack.enter_context(InputBar()).advance

        def on_ids(ids: AddedIds) -> None:
            if not quiet:
                _echo_ids(ids, use_json=target.use_json)

        adding = client.queue(queue)
        bulk = Bulk(
            adding
            if producer is None
            else adding.producer(producer, 1 if epoch is None else epoch),
            given.is_idle,
            on_ids,
            on_progress,
        )
        bulk.run(given.calls(client.server(), common))
    if quiet:
        _echo_counts(bulk, use_json=target.use_json)
    if not (quiet and target.use_json):
        _tell_what_was_there(bulk)


def _no_progress(_items: int, _byte_count: int) -> None:
    pass


def _echo_ids(ids: AddedIds, *, use_json: bool) -> None:
    # One write for all: a write for each would take longer than adding them.
    if not use_json:
        click.echo("\n".join(each.hex() for each in ids))
        return
    is_there = ids.duplicates or (False,) * len(ids)
    ends = {False: '"}', True: '", "duplicate": true}'}
    told = (f'{{"id": "{each.hex()}{ends[at]}' for each, at in zip(ids, is_there, strict=True))
    click.echo("\n".join(told))


def _echo_counts(bulk: Bulk, *, use_json: bool) -> None:
    if not use_json:
        click.echo(bulk.added)
        return
    others = {"duplicates": bulk.duplicates, "addedBefore": bulk.added_before}
    echo_json({"added": bulk.added, **{name: each for name, each in others.items() if each}})


def _tell_what_was_there(bulk: Bulk) -> None:
    if bulk.duplicates:
        items = counted(bulk.duplicates, "item")
        click.echo(f"Not added: {items} whose key was there already.", err=True)
    if bulk.added_before:
        items = counted(bulk.added_before, "item")
        click.echo(f"Not added again: {items} of an earlier run.", err=True)
