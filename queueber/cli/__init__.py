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
from queueber.cli.loads import loads
from queueber.cli.operating import cancel, pause, purge, redrive, resume
from queueber.cli.outcomes import complete, fail, release, remove
from queueber.cli.peek import peek
from queueber.cli.poll import extend, poll
from queueber.cli.queues import queues
from queueber.cli.receipts import receipt
from queueber.cli.repair import repair
from queueber.cli.results import readers, results
from queueber.cli.serve import serve
from queueber.cli.spark import spark
from queueber.cli.stats import stats
from queueber.cli.verify import verify
from queueber.cli.work import work
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


_COMMANDS = (
    serve, work, add, poll, extend, remove, complete, fail, release, receipt, results, readers,
    peek, cancel, purge, redrive, pause, resume, stats, queues, loads, spark, verify,
    repair,
)  # fmt: skip
for _command in _COMMANDS:
    commands.add_command(_command)


def main() -> None:
    commands(prog_name="queueber")


def spark_main() -> None:
    """`python -m queueber.spark`, which spark-submit can run, too."""
    jobs = _Commands("spark", commands=spark.commands, help=spark.help, epilog=EPILOG)
    jobs(prog_name="python -m queueber.spark")
