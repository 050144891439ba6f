"""Starting Spark from the command line, and a progress bar while it works."""

import contextlib
import importlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

import click

from queueber.cli.exits import USAGE, Failure
from queueber.cli.flags.types import name_and_value
from queueber.cli.output.progress import REFRESH_SECONDS

F = TypeVar("F", bound=Callable[..., object])
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SparkFlags:
    """How to start Spark. Making this object does not need Spark."""

    master: str | None
    conf: dict[str, str]

    @contextlib.contextmanager
    def session(self, name: str) -> Iterator[Any]:
        check_installed()
        from queueber.spark.jobs.session import SparkSettings, spark_session

        with contextlib.ExitStack() as stack:
            with _status("starting Spark"):
                started = stack.enter_context(
                    spark_session(name, SparkSettings(self.master, self.conf))
                )
            yield started


def spark_flags(command: F) -> F:
    """Give a command the flags of Spark, and pass it `spark`."""

    @wraps(command)
    def with_spark(
        *args: Any, master: str | None, conf: tuple[tuple[str, str], ...], **kwargs: Any
    ) -> Any:
        return command(*args, spark=SparkFlags(master, dict(conf)), **kwargs)

    for flag in reversed(_FLAGS):
        with_spark = flag(with_spark)
    return with_spark  # type: ignore[return-value]  # click keeps its own list of parameters


_FLAGS = (
    click.option(
        "--master",
        metavar="URL",
        help="Where Spark runs.  [default: as spark-submit says, or local[*]]",
    ),
    click.option(
        "--conf",
        type=name_and_value,
        multiple=True,
        metavar="NAME=VALUE",
        help="A configuration property of Spark. May be repeated.",
    ),
)


def check_installed() -> None:
    missing = [each for each in ("pyspark", "pyarrow") if not _can_import(each)]
    if missing:
        words = " and ".join(missing) + (" is" if len(missing) == 1 else " are")
        raise Failure(f"{words} not installed; run: pip install 'queueber[spark]'", USAGE)


def _can_import(name: str) -> bool:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        return False
    return True


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


def with_task_bar(session: Any, title: str, work: Callable[[], T]) -> T:
    """Run `work`; on a terminal, show how many of its Spark tasks are done."""
    if not sys.stderr.isatty():
        return work()
    from queueber.cli.output.progress_bars import CountBar

    tasks = _Tasks(session.sparkContext.statusTracker())
    is_over = threading.Event()
    with CountBar(title) as bar, ThreadPoolExecutor(1) as pool:
        # The work stays in this thread: only it gets Ctrl-C, and the session belongs to it.
        pool.submit(_show_until, is_over, lambda: bar.show(*tasks.count()))
        try:
            return work()
        finally:
            is_over.set()


def _show_until(is_over: threading.Event, show: Callable[[], None]) -> None:
    while not is_over.wait(REFRESH_SECONDS):
        show()


class _Tasks:
    """Counts tasks. Spark forgets finished stages, so their totals are kept here."""

    def __init__(self, tracker: Any) -> None:
        self._tracker = tracker
        self._totals: dict[int, int] = {}

    def count(self) -> tuple[int, int | None]:
        left = 0
        for stage_id in self._tracker.getActiveStageIds():
            stage = self._tracker.getStageInfo(stage_id)
            if stage is not None:
                self._totals[stage_id] = stage.numTasks
                left += stage.numTasks - stage.numCompletedTasks
        total = sum(self._totals.values())
        return total - left, total or None
