"""`queueber work`: a pool of workers that run a function for every item."""

import os
import sys
from typing import Any, Literal, NoReturn

import click
from click.exceptions import Exit

from queueber.cli.exits import INTERRUPTED, NEGATIVE, Failure
from queueber.cli.flags import count_flag, seconds
from queueber.cli.output import echo_json
from queueber.cli.target import Target, queue_flags

_SERIALIZERS = click.Choice(["json"])


class _Stderr:
    """The current `sys.stderr`, which the live line replaces while it is shown."""

    def write(self, text: str) -> int:
        return sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()

    def isatty(self) -> bool:
        return sys.stderr.isatty()


@click.command()
@click.argument("handler", metavar="MODULE:NAME")
@click.option(
    "--queues",
    metavar="NAME=WEIGHT,...",
    help="Several queues with their weights, such as images=3,mail=1, in place of --queue.",
)
@count_flag(
    "--concurrency", "-c", default=8, help="Handlers that run at the same time, in each process."
)
@count_flag(
    "--processes",
    "-p",
    least=0,
    default=0,
    show_default=False,
    help="Worker processes; 0: work in this process.  [default: 0]",
)
@count_flag(
    "--prefetch",
    least=0,
    help="Items leased in advance, in each process.  [default: --concurrency]",
)
@click.option(
    "--lease",
    type=seconds,
    default=60,
    show_default=True,
    help="Length of a lease. It is extended while handlers work.",
)
@click.option(
    "--timeout",
    type=seconds,
    help="How long a handler may take with one item; then the item fails.  [default: no limit]",
)
@click.option(
    "--loop",
    type=click.Choice(["asyncio", "trio"]),
    default="asyncio",
    show_default=True,
    help="The library that an 'async def' handler uses.",
)
@click.option(
    "--results/--no-results", default=True, help="Keep what the function returns.  [default: keep]"
)
@click.option(
    "--middleware",
    multiple=True,
    metavar="MODULE:NAME",
    help="A queueber.Middleware around the function; may be repeated, the outermost first.",
)
@click.option("--serializer", type=_SERIALIZERS, help="Turns results into bytes.")
@click.option("--deserializer", type=_SERIALIZERS, help="Makes item.value from item.contents.")
@click.option(
    "--until",
    type=click.Choice(["empty", "done"]),
    help="End when nothing is ready (empty), or delayed or leased either (done).",
)
@click.option(
    "--shutdown-timeout",
    type=seconds,
    default=30,
    show_default=True,
    help="How long handlers may take to finish after a signal to stop.",
)
@click.option(
    "--progress/--no-progress",
    default=True,
    show_default=True,
    help="A live line on a terminal, else a log line every ten seconds.",
)
@click.option("--topic", help="Instead of a queue: take the messages of this topic,")
@click.option("--group", default="", help="as this shared group.")
@click.option("--must-exist", is_flag=True, help="Fail if the queue does not exist at the start.")
@queue_flags
@click.pass_context
def work(
    context: click.Context,
    /,
    target: Target,
    until: Literal["empty", "done"] | None,
    topic: str | None,
    queues: str | None,
    **arguments: Any,
) -> None:
    """Run a function for every item or message, or the jobs of an app.

    \b
    Examples:
      queueber work thumbnails:make --queue thumbnails --concurrency 32
      queueber work shop.tasks:app
      queueber work shop.tasks:app --queues images=3,mail=1 --processes 2
      queueber work shop.tasks:charge -q charges --processes 2 --serializer json
      queueber work mail:send -q mail --loop trio --until empty
      queueber work mail:send --topic orders --group mail

    \b
    A module such as thumbnails.py, in the current directory or installed:
      def make(item):
          return shrink(item.contents)

    The function gets an item (item.contents are its bytes) and returns the result: bytes or None,
    or any value with --serializer. If it raises, the item fails and is retried as the settings of
    the queue say; 'raise queueber.Retry(delay=5)' sets the time of the retry. A plain function runs
    in threads, an 'async def' as tasks.

    \b
    An app has jobs of many kinds, each with its queue, time limit and typed arguments:
      app = queueber.App()
      @app.job("resize", queue="images", timeout=30)
      def resize(path: str, width: int) -> None: ...

    Without --queue and --queues all queues that its jobs name are served, and without --address the
    server is that of the app. Items of a kind that it does not know are left to other workers.
    --queues is for a plain function, too. While all of these queues have items, one with weight 3
    gets three times as many handlers as one with weight 1.

    A queue that does not exist is created; with --must-exist the command fails instead.

    With --topic and --group the messages of a topic are leased to that shared group, which is
    created if it is missing: item.contents are the payload, item.partition and item.offset say
    where it is. Results are not kept.

    SIGTERM or Ctrl-C stops it: items that no handler has begun are released, and handlers have
    --shutdown-timeout seconds to finish. A second signal releases their items, too, and ends at
    once with 130. Otherwise it ends with 0, or with 1 if worker processes crash again and again.

    Set --timeout: without it a handler that hangs holds its item as long as the worker runs. A
    coroutine is cancelled; a process whose function takes too long is replaced. Without
    --processes such a function goes on in its thread, and when all do, the command ends with 1.

    With --json the counters are printed at the end: {"done": 3, "failed": 0, "refused": 0, ...}.
    """
    from queueber.jobs.app import App
    from queueber.logs import configure_logs
    from queueber.worker.handlers.time_limit import HandlersStuck
    from queueber.worker.processes.supervisor import WorkersDied
    from queueber.worker.worker import Worker
    from queueber.worker.worker_settings import resolve

    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    configure_logs("info", "auto", _Stderr())  # type: ignore[arg-type]  # all that is used of one
    given = {name for name in ("address", "queue") if _is_given(context, name)}
    weights = None if queues is None else _to_weights(queues)
    app = resolve(arguments["handler"])
    names_queues = weights is not None or isinstance(app, App)
    if target.must_exist:
        _check_exists(target, topic, arguments["group"], weights)
    options = dict(
        arguments,
        queue=target.queue if topic is None and ("queue" in given or not names_queues) else None,
        queues=weights,
        topic=topic,
        connect_timeout=target.connect_timeout,
    )
    if isinstance(app, App):
        del options["handler"]
        if target.token is not None:
            options["token"] = target.token
        if target.tls_options is not None:
            options["tls"] = target.tls_options
        worker = app.worker(address=target.address if "address" in given else None, **options)
    else:
        worker = Worker(target.address, token=target.token, tls=target.tls_options, **options)
    try:
        stats = worker.run(until=until)
    except WorkersDied as error:
        raise Failure(str(error), NEGATIVE) from None
    except HandlersStuck as error:
        Failure(str(error), NEGATIVE).show()
        _exit(NEGATIVE)
    if target.use_json:
        echo_json(stats)
    code = INTERRUPTED if worker.was_hurried else 0
    if stats.abandoned or stats.stuck:
        _exit(code)
    raise Exit(code)


def _exit(code: int) -> NoReturn:
    """End at once: threads with handlers that hang would keep the interpreter from ending."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _is_given(context: click.Context, flag: str) -> bool:
    """Whether a flag was given, on the command line or in the environment."""
    return context.get_parameter_source(flag) is not click.core.ParameterSource.DEFAULT


def _to_weights(queues: str) -> dict[str, int]:
    weights = {}
    for each in queues.split(","):
        name, _, weight = each.partition("=")
        if not name or not (weight or "1").isdecimal():
            raise click.BadParameter(
                f"{each!r} is not NAME or NAME=WEIGHT, such as images=3", param_hint="--queues"
            )
        weights[name] = int(weight or "1")
    return weights


def _check_exists(
    target: Target, topic: str | None, group: str, weights: dict[str, int] | None
) -> None:
    with target.connect() as client:
        if topic is not None:
            client.topic(topic, must_exist=True).group(group).stats()
            return
        for queue in weights or [target.queue]:
            client.queue(queue, must_exist=True).stats()
