"""Flags for what items have of their own, in place of what their queue says."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import click

from queueber.cli.flags import delays, gathered, seconds_up_to, timeout_seconds
from queueber.client.arguments.item_options import OwnOptions
from queueber.limits import ATTEMPTS_CEILING, DELAY_MS_MAX

attempts_flag = click.option(
    "--attempts",
    type=click.IntRange(0, ATTEMPTS_CEILING),
    metavar="NUMBER",
    help="Failures that make an item a dead letter, in place of the queue's; 0: no limit.",
)
backoff_flag = click.option(
    "--backoff",
    type=delays,
    help="Seconds before each retry, as in 1,10,60, in place of the queue's; the last repeats.",
)
timeout_flag = click.option(
    "--timeout", type=timeout_seconds, help="How long a worker may take with an item."
)
_expires_flag = click.option(
    "--expires",
    type=seconds_up_to(DELAY_MS_MAX, is_zero_allowed=False),
    help="An item that nobody has leased so long after it was added dies.",
)


@dataclass(frozen=True, slots=True)
class OwnFlags:
    """Of items that the server adds at a time of its own."""

    attempts: int | None
    backoff: Sequence[float] | None
    timeout: float | None
    expires: float | None

    @property
    def given(self) -> OwnOptions:
        found = {
            "attempts": self.attempts,
            "backoff": self.backoff,
            "timeout": self.timeout,
            "expires": self.expires,
        }
        return cast("OwnOptions", {k: each for k, each in found.items() if each is not None})


own_options_flags = gathered(
    "own", OwnFlags, attempts_flag, backoff_flag, timeout_flag, _expires_flag
)
