"""Starting Spark from the command line, and a progress bar while it works."""

import contextlib
import importlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import click

from queueber.cli.exits import USAGE, Failure
from queueber.cli.flags import gathered, pairs_flag
from queueber.cli.progress import REFRESH_SECONDS, count_bar
from queueber.cli.target import Target
from queueber.spark.jobs.settings import SparkSettings

T = TypeVar("T")

spark_flags = gathered(
    "spark",
    SparkSettings,
    click.option(
        "--master",
        metavar="URL",
        help="Where Spark runs.  [default: as spark-submit says, or local[*]]",
    ),
    pairs_flag("--conf", help="A configuration property of Spark."),
)


def run_job(spark: SparkSettings, name: str, title: str, job: Callable[[Any], T]) -> T:
    """Start Spark and run `job` with its session; on a terminal, with a bar of its tasks."""
    from queueber.spark.jobs.session import spark_session

    with contextlib.ExitStack() as stack:
        with _status("starting Spark"):
            session = stack.enter_context(spark_session(name, spark))
        if sys.stderr.isatty():
            stack.enter_context(_task_bar(session, title))
        # The job stays in this thread: only it gets Ctrl-C, and the session belongs to it.
        return job(session)


def connection_options(target: Target) -> dict[str, str | None]:
    """Options of the data source: how tasks reach the server of the command."""
    tls, token = target.tls_options, target.token
    return {
        "address": target.address,
        "token": token if isinstance(token, str) else None,
        "tokenFile": _absolute(str(target.token_file)) if target.token_file else None,
        "tls": None if tls is None else "true",
        "tlsCa": _absolute(target.tls_ca),
        "tlsCertificate": _absolute(target.tls_certificate),
        "tlsKey": _absolute(target.tls_key),
    }


def _absolute(file: str | None) -> str | None:
    return os.path.abspath(file) if file else None


def check_installed() -> None:
    missing = []
    for name in ("pyspark", "pyarrow"):
        try:
            importlib.import_module(name)
        except ModuleNotFoundError:
            missing.append(name)
    if missing:
        words = " and ".join(missing) + (" is" if len(missing) == 1 else " are")
        raise Failure(f"{words} not installed; run: pip install 'queueber[spark]'", USAGE)


@contextlib.contextmanager
def _status(text: str) -> Iterator[None]:
    """Show a line on the terminal, until the block ends."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    # A copy of stderr, because file number 2 is Spark's log while Spark starts.
    with (
        os.fdopen(os.dup(sys.stderr.fileno()), "w") as terminal,
        Console(file=terminal).status(text),
    ):
        yield


@contextlib.contextmanager
def _task_bar(session: Any, title: str) -> Iterator[None]:
    """Show how many of Spark's tasks are done, until the block ends."""
    tracker = session.sparkContext.statusTracker()
    is_over = threading.Event()

    def show_tasks() -> None:
        # Spark forgets finished stages, so their totals are kept here.
        totals: dict[int, int] = {}
        while not is_over.wait(REFRESH_SECONDS):
            left = 0
            for stage_id in tracker.getActiveStageIds():
                stage = tracker.getStageInfo(stage_id)
                if stage is not None:
                    totals[stage_id] = stage.numTasks
                    left += stage.numTasks - stage.numCompletedTasks
            total = sum(totals.values())
            show(total - left, total or None)

    with count_bar(title) as show, ThreadPoolExecutor(1) as pool:
        pool.submit(show_tasks)
        try:
            yield
        finally:
            is_over.set()
