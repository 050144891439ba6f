"""`queueber receipt`: what became of the items of a batch."""

import sys
from collections.abc import Callable
from typing import TypeVar

import click
from click.exceptions import Exit

from queueber import Queue
from queueber.cli.exits import NEGATIVE
from queueber.cli.flags.target import Target, client_flags, queue_flag
from queueber.cli.flags.types import seconds
from queueber.cli.output.json_lines import echo_json, to_json
from queueber.cli.output.progress import REFRESH_SECONDS
from queueber.cli.output.text import echo_table
from queueber.clock import SystemClock
from queueber.errors import InvalidArgument
from queueber.limits import SECOND_MS
from queueber.model import Receipt

F = TypeVar("F", bound=Callable[..., object])


def wait_flags(command: F) -> F:
    """Give a command the flags `--wait` and `--timeout`."""
    command = click.option("--timeout", type=seconds, help="With --wait: the longest wait.")(
        command
    )
    return click.option("--wait", is_flag=True, help="Wait until the batch is complete.")(command)


@click.command()
@click.argument("batch")
@wait_flags
@queue_flag
@client_flags
def receipt(target: Target, queue: str, batch: str, wait: bool, timeout: float | None) -> None:
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
    with target.connect() as client:
        asked = client.queue(queue, must_exist=True)
        found = wait_receipt(asked, batch, timeout) if wait else asked.receipt(batch)
    if target.use_json:
        echo_json(to_json(found))
    else:
        echo_receipt(found)
    if not found.complete:
        raise Exit(NEGATIVE)


def check_wait(timeout: float | None, *, wait: bool) -> None:
    if timeout is not None and not wait:
        raise InvalidArgument("--timeout is how long to wait; give --wait, too")


def wait_receipt(queue: Queue, batch: str, timeout: float | None) -> Receipt:
    """Wait until the batch is complete or the time is up; on a terminal, with a progress bar."""
    if sys.stderr.isatty():
        return _wait_and_show(queue, batch, timeout)
    return queue.wait_for_batch(batch, timeout)


def _wait_and_show(queue: Queue, batch: str, timeout: float | None) -> Receipt:
    from queueber.cli.output.progress_bars import CountBar

    clock = SystemClock()
    found = queue.receipt(batch)
    give_up_ms = None if timeout is None else clock.now_ms() + timeout * SECOND_MS
    with CountBar(batch) as bar:
        while True:
            bar.show(found.done + found.dead, found.added)
            left = REFRESH_SECONDS
            if give_up_ms is not None:
                left = min(left, (give_up_ms - clock.now_ms()) / SECOND_MS)
            if found.complete or left <= 0:
                return found
            found = queue.wait_for_batch(batch, left)


def echo_receipt(found: Receipt, *more: tuple[str, str]) -> None:
    """Print a table that begins with the rows `more`."""
    rows = [*more]
    rows += [(word, f"{getattr(found, word):,}") for word in ("added", "done", "dead", "live")]
    rows.append(("complete", "yes" if found.complete else "no"))
    echo_table(("batch", found.batch), rows)
