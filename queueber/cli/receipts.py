"""`queueber receipt`: what became of a batch, now or once it is complete."""

import sys

import click
from click.exceptions import Exit

from queueber.cli.exits import NEGATIVE
from queueber.cli.finding import existing_queue
from queueber.cli.options import Target, client_options, queue_option, seconds
from queueber.cli.output import echo_json, echo_table, to_json
from queueber.cli.watching import SHOW_SECONDS
from queueber.client import Queue
from queueber.clock import SystemClock
from queueber.errors import InvalidArgument
from queueber.limits import SECOND_MS
from queueber.model import Receipt

wait_option = click.option("--wait", is_flag=True, help="Wait until the batch is complete.")
for_option = click.option("--for", "for_seconds", type=seconds, help="Wait at most so long.")


@click.command()
@click.argument("batch")
@wait_option
@for_option
@queue_option
@client_options
def receipt(target: Target, queue: str, batch: str, wait: bool, for_seconds: float | None) -> None:
    """Show what became of a batch.

    \b
    Examples:
      queueber receipt night-run
      queueber receipt night-run --wait --for 3600 && ./publish

    A batch is what 'add --batch' named. Its items are done when they were completed or removed,
    dead while they are dead letters and after they were cancelled or purged, and live otherwise. It
    is complete when none is live.

    Ends with 0 when the batch is complete, and with 1 when it is not. On a terminal, --wait shows
    how far it is. With --json: an object with "added", "done", "dead", "live", "complete" and
    digests of the ids.
    """
    check_wait(for_seconds, wait=wait)
    with target.connect() as client:
        asked = existing_queue(client, queue)
        found = wait_receipt(asked, batch, for_seconds) if wait else asked.receipt(batch)
    if target.use_json:
        echo_json(to_json(found))
    else:
        echo_receipt(found)
    if not found.complete:
        raise Exit(NEGATIVE)


def check_wait(for_seconds: float | None, *, wait: bool) -> None:
    if for_seconds is not None and not wait:
        raise InvalidArgument("--for is how long to wait; give --wait, too")


def wait_receipt(queue: Queue, batch: str, for_seconds: float | None) -> Receipt:
    """Wait until the batch is complete, or so long; on a terminal, show how far it is."""
    if sys.stderr.isatty():
        return _wait_and_show(queue, batch, for_seconds)
    return queue.wait_for_batch(batch, for_seconds)


def _wait_and_show(queue: Queue, batch: str, for_seconds: float | None) -> Receipt:
    from queueber.cli.progress import CountBar

    clock = SystemClock()
    found = queue.receipt(batch)
    give_up_ms = None if for_seconds is None else clock.now_ms() + for_seconds * SECOND_MS
    with CountBar(batch) as bar:
        while True:
            bar.show(found.done + found.dead, found.added)
            left = SHOW_SECONDS
            if give_up_ms is not None:
                left = min(left, (give_up_ms - clock.now_ms()) / SECOND_MS)
            if found.complete or left <= 0:
                return found
            found = queue.wait_for_batch(batch, left)


def echo_receipt(found: Receipt, *more: tuple[str, str]) -> None:
    """As a table; `more` are rows before its own."""
    rows = [*more]
    rows += [(word, f"{getattr(found, word):,}") for word in ("added", "done", "dead", "live")]
    rows.append(("complete", "yes" if found.complete else "no"))
    echo_table(("batch", found.batch), rows)
