"""`queueber add`: add items to a queue. `cli/adding` reads the input and sends it."""

import contextlib
import sys
from functools import partial
from pathlib import Path

import click

from queueber import AddedIds
from queueber.cli.adding.batches import ItemDefaults
from queueber.cli.adding.sender import Sender
from queueber.cli.adding.sources import Sources
from queueber.cli.flags import (
    count_flag,
    delay_seconds,
    expires,
    gathered,
    moment,
    pairs_flag,
    whole_number,
)
from queueber.cli.output import counted, echo_json
from queueber.cli.own_options import attempts_flag, backoff_flag, timeout_flag
from queueber.cli.progress import input_bar
from queueber.cli.target import Target, new_queue_flags
from queueber.errors import InvalidArgument
from queueber.limits import PRIORITY_DEFAULT, PRIORITY_MAX


@click.command()
@click.argument("contents", nargs=-1)
@click.option("--lines", is_flag=True, help="Each line of standard input is an item.")
@click.option("--null", is_flag=True, help="As --lines, but items end with a NUL byte.")
@click.option("--jsonl", is_flag=True, help="Each line of standard input is a JSON object.")
@click.option(
    "--file",
    "files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The whole file is an item. May be repeated.",
)
@click.option(
    "--delay", type=delay_seconds, default=0, help="How long the items stay hidden from polls."
)
@click.option(
    "--at",
    type=moment,
    help="When the items become ready, with an offset from UTC or a zone: see above.",
)
@count_flag(
    "--priority",
    least=0,
    most=PRIORITY_MAX,
    default=PRIORITY_DEFAULT,
    help=f"0 to {PRIORITY_MAX}; polls take higher priorities first.",
)
@click.option(
    "--key", help="Skip the item if one with this key was added within the queue's --dedup-window."
)
@pairs_flag("--attribute", "attributes", help="Metadata of each item.")
@attempts_flag
@backoff_flag
@timeout_flag
@click.option(
    "--expires",
    type=expires,
    help="Seconds, or a time as of --at: an item that nobody has leased by then dies.",
)
@click.option("--batch", metavar="NAME", help="Count the items under this name; see 'receipt'.")
@click.option(
    "--after", multiple=True, metavar="ID", help="Wait until this item is done. May be repeated."
)
@click.option("--after-batch", metavar="NAME", help="Wait until this batch is complete.")
@click.option("--producer", metavar="ID", help="Makes the command safe to repeat; see above.")
@click.option(
    "--epoch",
    type=whole_number,
    help="Of the producer; a higher one starts from scratch. [default: 1]",
)
@click.option("--quiet", is_flag=True, help="Print how many items were added, not their ids.")
@gathered("sources", Sources)
@gathered("defaults", ItemDefaults)
@new_queue_flags
def add(
    target: Target,
    sources: Sources,
    defaults: ItemDefaults,
    producer: str | None,
    epoch: int | None,
    quiet: bool,
) -> None:
    """Add items to a queue, and print their ids.

    \b
    Examples:
      queueber add 'do this' 'and that' --priority 9
      queueber add 'pay 17' --key order-17 --attribute trace=a1b2
      queueber add --lines --quiet --batch night-run < jobs.txt
      queueber add --lines --quiet --producer load-2026-11-16 < jobs.txt
      queueber add 'good morning' --at '2026-12-24T08:00 Europe/Berlin'
      queueber add 'quote 17' --attempts 3 --backoff 1,10 --timeout 30 --expires 600
      find . -name '*.png' -print0 | queueber add --null -q images --delay 60
      echo '{"contents": "pay 17", "key": "order-17"}' | queueber add --jsonl

    --at takes a time as ISO 8601 writes it, with an offset (2026-12-24T08:00+01:00, or Z for UTC)
    or followed by a time zone; a time that has passed adds the items at once.

    Each argument is an item. With --lines the newline is not part of the item, and empty lines are
    skipped; arguments and files are added unchanged. A queue that does not exist is created, unless
    you give --must-exist.

    With --jsonl each line has "contents" (text) or "contentsBase64", and may have "key",
    "priority", "delay" (seconds), "attributes" (an object of strings), "attempts", "backoff" (a
    list of seconds), "timeout" and "expires" (seconds); the flags are defaults for what a line
    leaves out. Lines printed by 'poll --json' or 'peek --json' work, too: their
    "id", "attempt", "batch" and similar fields are ignored.

    With --after and --after-batch the items stay delayed until all of that is done; --delay begins
    then. If one of those items dies or is cancelled, they are dead letters, too.

    If an item's key was used before, the item is not added, and you get the id of the first one.

    Items are sent in calls of up to 1000. Each call adds all its items or none. If a call fails,
    the message says how many items were added before.

    With --producer you can repeat the command after a crash, with the same input and flags: what
    was added is not added again. Calls are numbered, and the server compares the contents of a
    repeated call with those of the first: if they differ, the command fails. (It remembers the
    contents of the last 8 calls; older ones are skipped by their number, and their ids are not
    printed.) For different input choose another producer, or a higher --epoch, which also stops
    runs of a lower one. The server forgets a producer after 7 days without an add.

    With --json each id is an object: {"id": "..."}, with "duplicate": true if the key was used
    before. With --quiet it is the count: {"added": 2}.
    """
    if epoch is not None and producer is None:
        raise InvalidArgument("--epoch belongs to a producer; give --producer, too")
    sources.check(defaults)
    with target.connect() as client, contextlib.ExitStack() as stack:
        # Ids printed on the same terminal would break the bar.
        has_bar = sources.has_stream and sys.stderr.isatty() and (quiet or not sys.stdout.isatty())
        on_progress = stack.enter_context(input_bar()) if has_bar else None
        on_ids = None if quiet else partial(_echo_ids, use_json=target.use_json)
        queue = client.queue(target.queue, must_exist=target.must_exist)
        epoch = 1 if epoch is None else epoch
        adder = queue if producer is None else queue.producer(producer, epoch)
        sender = Sender(adder, sources.is_idle, on_ids, on_progress)
        # A producer must form the same batches of the same input, however fast it arrives.
        sender.run(sources.batches(client.server(), defaults, fills=producer is not None))
    if quiet:
        _echo_counts(sender, use_json=target.use_json)
    if not (quiet and target.use_json):
        _echo_skipped(sender)


def _echo_ids(ids: AddedIds, *, use_json: bool) -> None:
    # One write for all ids: a write for each would take longer than adding them.
    if not use_json:
        click.echo("\n".join(each.hex() for each in ids))
        return
    duplicates = ids.duplicates or (False,) * len(ids)
    ends = {False: '"}', True: '", "duplicate": true}'}
    lines = (f'{{"id": "{each.hex()}{ends[at]}' for each, at in zip(ids, duplicates, strict=True))
    click.echo("\n".join(lines))


def _echo_counts(sender: Sender, *, use_json: bool) -> None:
    others = {"duplicates": sender.duplicates, "addedBefore": sender.added_before}
    counts = {"added": sender.added} | {name: each for name, each in others.items() if each}
    echo_json(counts if use_json else sender.added)


def _echo_skipped(sender: Sender) -> None:
    if sender.duplicates:
        items = counted(sender.duplicates, "item")
        click.echo(f"Not added: {items} whose key was used before.", err=True)
    if sender.added_before:
        items = counted(sender.added_before, "item")
        click.echo(f"Not added again: {items} of an earlier run.", err=True)
