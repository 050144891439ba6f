"""The command line: `queueber serve`, and a command for everything a client can do."""

import os
import sys
import traceback
from typing import Any

import click
from click.exceptions import Abort, Exit

from queueber.cli.add import add
from queueber.cli.exits import (
    BROKEN_PIPE,
    EPILOG,
    INTERRUPTED,
    OUR_FAULT,
    USAGE,
    Failure,
    failure_of,
)
from queueber.cli.items import extend, poll, remove
from queueber.cli.queues import queues, stats
from queueber.cli.serve import serve
from queueber.cli.verify import verify
from queueber.errors import QueueberError
from queueber.version import VERSION


class _Commands(click.Group):
    """Turns whatever ends a command into a sentence and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.ClickException, Exit):
            raise
        except (KeyboardInterrupt, Abort):
            raise Exit(INTERRUPTED) from None
        except BrokenPipeError:
            _forget_stdout()
            raise Exit(BROKEN_PIPE) from None
        except QueueberError as error:
            raise failure_of(error) from error
        except OSError as error:
            raise Failure(f"cannot read or write: {error}", USAGE) from error
        except Exception as error:
            traceback.print_exc(file=sys.stderr)
            raise Failure(f"a fault of Queueber's own: {error}", OUR_FAULT) from error


def _forget_stdout() -> None:
    """Let the interpreter flush what is left into nothing, instead of complaining at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())


@click.group(cls=_Commands, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, message="queueber %(version)s")
def commands() -> None:
    """Queueber, a durable, lease-based work queue.

    \b
    Try it:
      queueber serve --data-dir ./data      in one terminal
      queueber add 'do this' 'and that'     in another
      queueber poll -n 2 --lease 30
      queueber remove LEASE ID ID
    """


for _command in (serve, add, poll, remove, extend, stats, queues, verify):
    commands.add_command(_command)


def main() -> None:
    commands(prog_name="queueber")
