"""`queueber receipt`: what became of the items of a batch."""

import sys

import click
from click.exceptions import Exit

from queueber import Queue
from queueber.cli.exits import NEGATIVE
from queueber.cli.flags import F, seconds
from queueber.cli.output import number_rows
from queueber.cli.progress import REFRESH_SECONDS, count_bar
from queueber.cli.target import Target, queue_flags
from queueber.clock import SystemClock
from queueber.errors import InvalidArgument
from queueber.limits import SECOND_MS
from queueber.model import Receipt


def wait_flags(command: F) -> F:
    """Give a command the flags `--wait` and `--timeout`."""
    wait = click.option("--wait", is_flag=True, help="Wait until the batch is complete.")
    timeout = click.option("--timeout", type=seconds, help="With --wait: the longest wait.")
    return wait(timeout(command))


@click.command()
@click.argument("batch")
@wait_flags
@queue_flags
def receipt(target: Target, batch: str, wait: bool, timeout: float | None) -> None:
    """Show what became of the items of a batch.

    \b
    Examples:
      queueber receipt night-run
      queueber receipt night-run --wait --timeout 3600 && ./publish

    'add --batch NAME' puts items into a batch. An item is done when it was completed or removed;
    dead when it is a dead letter, or was cancelled or purged; live otherwise. The batch is complete
    when no item is live.

    Ends with 0 if the batch is complete, else with 1. On a terminal, --wait shows a progress bar.
    With --json: an object with "added", "done", "dead", "live", "complete" and digests of the ids.
    """
    check_wait(timeout, wait=wait)
    with target.open_queue() as queue:
        found = wait_receipt(queue, batch, timeout) if wait else queue.receipt(batch)
    target.echo_table(("batch", found.batch), receipt_rows(found), found)
    if not found.complete:
        raise Exit(NEGATIVE)


def check_wait(timeout: float | None, *, wait: bool) -> None:
    if timeout is not None and not wait:
        raise InvalidArgument("--timeout is how long to wait; give --wait, too")


def wait_receipt(queue: Queue, batch: str, timeout: float | None) -> Receipt:
    """Wait until the batch is complete or the time is up; on a terminal, with a progress bar."""
    if not sys.stderr.isatty():
        return queue.wait_for_batch(batch, timeout)
    clock = SystemClock()
    found = queue.receipt(batch)
    give_up_ms = None if timeout is None else clock.now_ms() + timeout * SECOND_MS
    with count_bar(batch) as show:
        while True:
            show(found.done + found.dead, found.added)
            left = REFRESH_SECONDS
            if give_up_ms is not None:
                left = min(left, (give_up_ms - clock.now_ms()) / SECOND_MS)
            if found.complete or left <= 0:
                return found
            found = queue.wait_for_batch(batch, left)


def receipt_rows(found: Receipt) -> list[tuple[str, str]]:
    complete = ("complete", "yes" if found.complete else "no")
    return [*number_rows(found, "added", "done", "dead", "live"), complete]
