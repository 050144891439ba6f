"""The command line: `queueber serve`, and a command for everything that a client can do."""

import os
import sys
import traceback
from typing import Any

import click
from click.exceptions import Abort, Exit

from queueber.cli import exits
from queueber.cli.backups.backup import backup
from queueber.cli.backups.import_original import import_original
from queueber.cli.backups.restore import restore
from queueber.cli.commands.add import add
from queueber.cli.commands.callback import callback
from queueber.cli.commands.finish import complete, fail, release, remove
from queueber.cli.commands.forget_batches import forget_batches
from queueber.cli.commands.gateway import gateway
from queueber.cli.commands.listings import batches, leases
from queueber.cli.commands.loads import loads
from queueber.cli.commands.operate import cancel, pause, purge, redrive, resume
from queueber.cli.commands.peek import peek
from queueber.cli.commands.ping import ping
from queueber.cli.commands.poll import extend, poll
from queueber.cli.commands.queues import queues
from queueber.cli.commands.receipt import receipt
from queueber.cli.commands.reschedule import reschedule, run_now
from queueber.cli.commands.results import readers, results
from queueber.cli.commands.schedule import schedule
from queueber.cli.commands.serve import serve
from queueber.cli.commands.show import show
from queueber.cli.commands.stats import stats
from queueber.cli.commands.store import repair, verify
from queueber.cli.commands.token import token
from queueber.cli.commands.upgrade import upgrade
from queueber.cli.commands.work import work
from queueber.cli.spark import spark
from queueber.cli.sql import sql
from queueber.cli.top import top
from queueber.cli.topics import topic
from queueber.cli.topics.listing import topics
from queueber.errors import QueueberError
from queueber.version import VERSION


class _Commands(click.Group):
    """Turns every error of a command into a message and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.ClickException, Exit):
            raise
        except (KeyboardInterrupt, Abort):
            raise Exit(exits.INTERRUPTED) from None
        except BrokenPipeError:
            _discard_stdout()
            raise Exit(exits.BROKEN_PIPE) from None
        except QueueberError as error:
            raise exits.failure_of(error) from error
        except OSError as error:
            raise exits.Failure(f"cannot read or write: {error}", exits.USAGE) from error
        except Exception as error:
            traceback.print_exc(file=sys.stderr)
            raise exits.Failure(f"a bug of Queueber: {error}", exits.OUR_FAULT) from error


def _discard_stdout() -> None:
    """Send what is left to /dev/null, or the interpreter reports an error when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.group(
    cls=_Commands, epilog=exits.EPILOG, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(VERSION, message="queueber %(version)s")
def commands() -> None:
    """Queueber, a durable, lease-based work queue.

    \b
    Try it:
      queueber serve --data-dir ./data      in one terminal
      queueber add 'do this' 'and that'     in another
      queueber poll -n 2 --lease 30         prints a lease and two items
      queueber remove LEASE                 when both are done

    'queueber work' does all of this for a Python function.
    """


_COMMANDS = (
    serve, gateway, work, add, poll, extend, remove, complete, fail, release, receipt, results,
    readers, show, peek, cancel, reschedule, run_now, purge, redrive, pause, resume, ping, top,
    stats, queues, leases, batches, forget_batches, callback, schedule, loads, topics, topic, sql,
    spark, token, backup, restore, verify, repair, upgrade, import_original,
)  # fmt: skip
for _command in _COMMANDS:
    commands.add_command(_command)


def main() -> None:
    commands(prog_name="queueber")


def spark_main() -> None:
    """The commands of `queueber spark` as `python -m queueber.spark`, also for spark-submit."""
    jobs = _Commands("spark", commands=spark.commands, help=spark.help, epilog=exits.EPILOG)
    jobs(prog_name="python -m queueber.spark")
