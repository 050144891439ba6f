"""`queueber receipt`: what became of the items of a batch."""

import sys
from dataclasses import dataclass

import click
from click.exceptions import Exit

from queueber import Queue
from queueber.cli.exits import NEGATIVE
from queueber.cli.flags import gathered, seconds
from queueber.cli.output import number_rows
from queueber.cli.progress import REFRESH_SECONDS, count_bar
from queueber.cli.target import Target, queue_flags
from queueber.clock import SystemClock
from queueber.errors import InvalidArgument
from queueber.limits import SECOND_MS
from queueber.model import Receipt


@dataclass(frozen=True, slots=True)
class Waiting:
    """Whether to wait until a batch is complete, and how long at most."""

    wait: bool
    timeout: float | None

    def __post_init__(self) -> None:
        if self.timeout is not None and not self.wait:
            raise InvalidArgument("--timeout is how long to wait; give --wait, too")

    def receipt(self, queue: Queue, batch: str) -> Receipt:
        """The receipt when the wait is over; on a terminal, with a progress bar meanwhile."""
        if not self.wait:
            return queue.receipt(batch)
        if not sys.stderr.isatty():
            return queue.wait_for_batch(batch, self.timeout)
        clock = SystemClock()
        found = queue.receipt(batch)
        give_up_ms = None if self.timeout is None else clock.now_ms() + self.timeout * SECOND_MS
        with count_bar(batch) as show:
            while True:
                show(found.done + found.dead, found.added)
                left = REFRESH_SECONDS
                if give_up_ms is not None:
                    left = min(left, (give_up_ms - clock.now_ms()) / SECOND_MS)
                if found.complete or left <= 0:
                    return found
                found = queue.wait_for_batch(batch, left)


wait_flags = gathered(
    "waiting",
    Waiting,
    click.option("--wait", is_flag=True, help="Wait until the batch is complete."),
    click.option("--timeout", type=seconds, help="With --wait: the longest wait."),
)


@click.command()
@click.argument("batch")
@wait_flags
@queue_flags
def receipt(target: Target, batch: str, waiting: Waiting) -> None:
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
    with target.open_queue() as queue:
        found = waiting.receipt(queue, batch)
    target.echo_table(("batch", found.batch), receipt_rows(found), found)
    if not found.complete:
        raise Exit(NEGATIVE)


def receipt_rows(found: Receipt) -> list[tuple[str, str]]:
    complete = ("complete", "yes" if found.complete else "no")
    return [*number_rows(found, "added", "done", "dead", "live"), complete]
