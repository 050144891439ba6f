"""`queueber work`: a pool of workers for a function that is named on the command line."""

import os
import sys
from typing import Any

import click
from click.exceptions import Exit

from queueber.cli.exits import INTERRUPTED, NEGATIVE, Failure
from queueber.cli.options import Target, client_options, queue_option, seconds
from queueber.cli.output import echo_json, to_json

_SERIALIZERS = click.Choice(["json"])


class _Stderr:
    """Wherever stderr is now: the live line puts itself in its place."""

    def write(self, text: str) -> int:
        return sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()

    def isatty(self) -> bool:
        return sys.stderr.isatty()


@click.command()
@click.argument("handler", metavar="MODULE:FUNCTION")
@click.option(
    "--concurrency",
    "-c",
    type=click.IntRange(min=1),
    default=8,
    show_default=True,
    metavar="NUMBER",
    help="Handlers at once, in each process.",
)
@click.option(
    "--processes",
    "-p",
    type=click.IntRange(min=0),
    default=0,
    metavar="NUMBER",
    help="Worker processes; 0 works in this one.  [default: 0]",
)
@click.option(
    "--prefetch",
    type=click.IntRange(min=0),
    metavar="NUMBER",
    help="Items leased ahead, in each process.  [default: as many as --concurrency]",
)
@click.option(
    "--lease",
    type=seconds,
    default=60,
    show_default=True,
    help="Length of a lease. It is extended while handlers are at work.",
)
@click.option(
    "--loop",
    type=click.Choice(["asyncio", "trio"]),
    default="asyncio",
    show_default=True,
    help="What an 'async def' handler is written for.",
)
@click.option("--serializer", type=_SERIALIZERS, help="Turns results that are not bytes into such.")
@click.option("--deserializer", type=_SERIALIZERS, help="Makes item.value of item.contents.")
@click.option("--until-empty", is_flag=True, help="End once nothing is ready.")
@click.option(
    "--shutdown-timeout",
    type=seconds,
    default=30,
    show_default=True,
    help="How long handlers may go on after a signal to stop.",
)
@queue_option
@client_options
def work(target: Target, until_empty: bool, **options: Any) -> None:
    """Run a Python function for every item of a queue.

    \b
    Examples:
      queueber work thumbnails:make --queue thumbnails --concurrency 32
      queueber work shop.tasks:charge -q charges --processes 2 --serializer json
      queueber work mail:send -q mail --loop trio --until-empty

    The function gets the item (item.contents are its bytes) and returns the result: bytes or None,
    or anything with --serializer. What it raises fails the item, which is tried again as the
    settings of the queue say; 'raise queueber.Retry(delay=5)' chooses when. A plain function runs
    in threads, an 'async def' as tasks. Modules are also looked for in the current directory.

    \b
    A module such as thumbnails.py:
      def make(item):
          return shrink(item.contents)

    SIGTERM or Ctrl-C ends it: what has not begun is given back, handlers have --shutdown-timeout
    seconds to finish. A second signal gives back what they have, and ends at once with 130.
    Otherwise ends with 0, and with 1 when worker processes die again and again.

    On a terminal one line shows how it goes; elsewhere a line is logged every ten seconds. With
    --json the figures at the end are printed: {"done": 3, "failed": 0, "refused": 0, ...}.
    """
    from queueber.logs import configure_logs
    from queueber.worker.processes.supervisor import WorkersDied
    from queueber.worker.worker import Worker

    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    configure_logs("info", "auto", _Stderr())  # type: ignore[arg-type]  # all that is used of one
    worker = Worker(target.address, connect_timeout=target.timeout_seconds, **options)
    try:
        stats = worker.run(until_empty=until_empty)
    except WorkersDied as error:
        raise Failure(str(error), NEGATIVE) from None
    if target.use_json:
        echo_json(to_json(stats))
    code = INTERRUPTED if worker.was_hurried else 0
    if stats.abandoned:
        # Threads in which handlers hang would keep the interpreter from ending.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    raise Exit(code)
