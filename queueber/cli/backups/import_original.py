"""`queueber import`: bring over the items of a data directory of the original Queueber."""

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import click

from queueber.cli.adding.batches import NewBatch, batch_bytes_max, split_batches
from queueber.cli.adding.sender import Sender
from queueber.cli.commands.store import locked
from queueber.cli.output import counted
from queueber.cli.progress import count_bar
from queueber.cli.target import Target, new_queue_flags
from queueber.clock import SystemClock
from queueber.limits import DELAY_MS_MAX, SECOND_MS


@click.command("import")
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--dry-run", is_flag=True, help="Only count the items. Needs no server.")
@new_queue_flags
def import_original(target: Target, folder: Path, dry_run: bool) -> None:
    """Bring over the items of the original Queueber.

    \b
    Example:
      queueber import /var/lib/old-queueber --queue jobs --dry-run
      queueber import /var/lib/old-queueber --queue jobs

    DIR is its data directory, and is only read. The original server must be stopped. Items that
    were in progress there are ready here, and come first; then come the others in the order in
    which they become visible, and those that are not visible yet are delayed for what is left.

    Items get new ids. The key of each is its old id, so an import may be repeated, for instance
    after an interruption: what was added within the dedup window of the queue (10 minutes, unless
    its settings say otherwise) is not added again.
    """
    # Other commands do not need RocksDB.
    from queueber.db.original import OriginalItem, OriginalStore

    with locked(folder), OriginalStore(folder) as store:
        found = store.count()
        total = found.waiting + found.in_progress
        if dry_run:
            counts = {"items": total, "waiting": found.waiting, "inProgress": found.in_progress}
            words = f"{found.waiting:,} waiting, {found.in_progress:,} in progress"
            target.echo(counts, f"{folder} has {counted(total, 'item')}: {words}")
            return
        now_secs = SystemClock().now_ms() // SECOND_MS

        def batches(bytes_max: int) -> Iterator[NewBatch]:
            items = store.items()
            for batch in split_batches(items, lambda item: len(item.contents), bytes_max):
                yield _new_batch(batch)

        def _new_batch(items: Iterable[OriginalItem]) -> NewBatch:
            chosen = list(items)
            delays = [max(0, item.visible_at_secs - now_secs) for item in chosen]
            return NewBatch(
                [item.contents for item in chosen],
                {
                    "key": [item.id.hex() for item in chosen],
                    "delay": [min(delay, DELAY_MS_MAX // SECOND_MS) for delay in delays],
                },
                0,
            )

        with target.open_queue() as queue, target.connect() as client, _bar(total) as advance:
            sender = Sender(queue, lambda: False, None, lambda items, _bytes: advance(items))
            sender.run(batches(batch_bytes_max(client.server().message_bytes_max)))
    repeated = f", {sender.duplicates:,} had been added before" if sender.duplicates else ""
    target.echo(
        {"added": sender.added, "duplicates": sender.duplicates},
        f"{counted(sender.added, 'item')} added to {target.queue}{repeated}",
    )


@contextlib.contextmanager
def _bar(total: int) -> Iterator[Callable[[int], None]]:
    """On a terminal, a bar that shows how many items are done."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    done = 0
    with count_bar("importing") as show:

        def advance(items: int) -> None:
            nonlocal done
            done += items
            show(done, total)

        yield advance
