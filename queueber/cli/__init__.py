"""The command line: `queueber serve`, and a command for everything that a client can do."""

import os
import sys
import traceback
from importlib import import_module
from typing import Any

import click
from click.exceptions import Abort, Exit

from queueber.cli import exits
from queueber.errors import QueueberError
from queueber.version import VERSION

_PLACES = {
    "serve": "commands.serve:serve",
    "gateway": "commands.gateway:gateway",
    "work": "commands.work:work",
    "add": "commands.add:add",
    "poll": "commands.poll:poll",
    "extend": "commands.poll:extend",
    "remove": "commands.finish:remove",
    "complete": "commands.finish:complete",
    "fail": "commands.finish:fail",
    "release": "commands.finish:release",
    "receipt": "commands.receipt:receipt",
    "results": "commands.results:results",
    "readers": "commands.results:readers",
    "show": "commands.show:show",
    "peek": "commands.peek:peek",
    "cancel": "commands.operate:cancel",
    "reschedule": "commands.reschedule:reschedule",
    "run-now": "commands.reschedule:run_now",
    "purge": "commands.operate:purge",
    "redrive": "commands.operate:redrive",
    "pause": "commands.operate:pause",
    "resume": "commands.operate:resume",
    "ping": "commands.ping:ping",
    "top": "top:top",
    "stats": "commands.stats:stats",
    "queues": "commands.queues:queues",
    "leases": "commands.listings:leases",
    "batches": "commands.listings:batches",
    "forget": "commands.forget_batches:forget_batches",
    "callback": "commands.callback:callback",
    "schedule": "commands.schedule:schedule",
    "loads": "commands.loads:loads",
    "topics": "topics.listing:topics",
    "topic": "topics:topic",
    "sql": "sql:sql",
    "spark": "spark:spark",
    "token": "commands.token:token",
    "backup": "backups.backup:backup",
    "restore": "backups.restore:restore",
    "verify": "commands.store:verify",
    "repair": "commands.store:repair",
    "upgrade": "commands.upgrade:upgrade",
    "import": "backups.import_original:import_original",
}
"""Where each command is: its module below this package, and its name there."""


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


class _Places(_Commands):
    """Imports a command when it is asked for: all of them take longer than most of them run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_PLACES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _PLACES:
            return None
        module, _, name = _PLACES[cmd_name].partition(":")
        found: click.Command = getattr(import_module(f"queueber.cli.{module}"), name)
        return found


@click.group(
    cls=_Places, epilog=exits.EPILOG, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(VERSION, message="queueber %(version)s")
def program() -> None:
    """Queueber, a durable, lease-based work queue.

    \b
    Try it:
      queueber serve --data-dir ./data      in one terminal
      queueber add 'do this' 'and that'     in another
      queueber poll -n 2 --lease 30         prints a lease and two items
      queueber remove LEASE                 when both are done

    'queueber work' does all of this for a Python function.
    """


def main() -> None:
    program(prog_name="queueber")


def spark_main() -> None:
    """The commands of `queueber spark` as `python -m queueber.spark`, also for spark-submit."""
    from queueber.cli.spark import spark

    jobs = _Commands("spark", commands=spark.commands, help=spark.help, epilog=exits.EPILOG)
    jobs(prog_name="python -m queueber.spark")
