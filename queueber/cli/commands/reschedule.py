"""`queueber reschedule` and `queueber run-now`: items become ready at another time."""

from datetime import datetime

import click

from queueber.cli import flags
from queueber.cli.target import Target, queue_flags
from queueber.errors import InvalidArgument


@click.command()
@flags.ids_argument
@click.option("--at", type=flags.moment, help="When, with an offset from UTC or a zone.")
@click.option("--delay", type=flags.delay_seconds, help="In place of --at: in how long.")
@queue_flags
def reschedule(
    target: Target, ids: tuple[bytes, ...], at: datetime | None, delay: float | None
) -> None:
    """Have items become ready at another time.

    \b
    Examples:
      queueber reschedule 0199f1c29b007d0aa1c07a8f0f1d2e3b --delay 3600
      queueber reschedule 0199f1c29b007d0aa1c07a8f0f1d2e3b --at '2026-12-24T08:00 Europe/Berlin'

    These are items that are ready or delayed. A time that has passed is now, as with 'run-now'.
    Items that wait to be retried keep their failed attempts. Not changed are items that are leased
    or dead, those that wait for others, and those that would expire by then. Prints the outcome for
    each id. Ends with 1 if one was not rescheduled. With --json: {"rescheduled": ["..."],
    "notRescheduled": []}.
    """
    if (at is None) == (delay is None):
        raise InvalidArgument("give --at or --delay, and one of them only")
    _reschedule(target, ids, at, delay)


@click.command("run-now")
@flags.ids_argument
@queue_flags
def run_now(target: Target, ids: tuple[bytes, ...]) -> None:
    """Make delayed items ready now.

    \b
    Example:
      queueber run-now 0199f1c29b007d0aa1c07a8f0f1d2e3b

    Also those that wait to be retried; items that are ready already keep their places. It is
    'reschedule --delay 0'. With --json: {"rescheduled": ["..."], "notRescheduled": []}.
    """
    _reschedule(target, ids, None, 0)


def _reschedule(
    target: Target, ids: tuple[bytes, ...], at: datetime | None, delay: float | None
) -> None:
    with target.open_queue() as queue:
        rescheduled = queue.reschedule(ids, at=at, delay=delay)
    outcomes = ["rescheduled" if each else "not rescheduled" for each in rescheduled]
    reason = "it is not ready or delayed, waits for others, or would expire by then"
    target.echo_outcomes(ids, outcomes, reason, ("rescheduled", "not rescheduled"))
