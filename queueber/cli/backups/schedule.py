"""Do something again and again, whatever goes wrong meanwhile."""

import threading
from collections.abc import Callable

import click

from queueber.cli.exits import failure_of
from queueber.clock import seconds
from queueber.errors import InvalidArgument, QueueberError

_RETRY_PART = 10
"""After a failure it is tried again when a tenth of the time is over."""


def repeat(run_once: Callable[[], None], every: float) -> None:
    """Until the process ends. What was wrong with an argument ends it at once."""
    never = threading.Event()
    while True:
        began = seconds()
        wait = every
        try:
            run_once()
        except InvalidArgument:
            raise
        except (QueueberError, OSError) as error:
            told = failure_of(error).message if isinstance(error, QueueberError) else str(error)
            click.echo(f"Error: {told}; trying again later", err=True)
            wait = every / _RETRY_PART
        never.wait(max(0.0, began + wait - seconds()))
