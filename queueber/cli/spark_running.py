"""What the Spark jobs of the command line share: starting Spark, and a bar while it works."""

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

from queueber.cli.add import attribute
from queueber.cli.exits import USAGE, Failure
from queueber.cli.watching import SHOW_SECONDS

F = TypeVar("F", bound=Callable[..., object])
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """Spark as the command line wants it. It is not there yet, nor need it be installed."""

    master: str | None
    conf: dict[str, str]

    @contextlib.contextmanager
    def session(self, name: str) -> Iterator[Any]:
        check_installed()
        from queueber.spark.jobs.session import SparkSettings, spark_session

        with contextlib.ExitStack() as stack:
            with _told("starting Spark"):
                started = stack.enter_context(
                    spark_session(name, SparkSettings(self.master, self.conf))
                )
            yield started


def spark_options(command: F) -> F:
    """Give a command the options of Spark, as `spark`."""

    @wraps(command)
    def with_spark(
        *args: Any, master: str | None, conf: tuple[tuple[str, str], ...], **kwargs: Any
    ) -> Any:
        return command(*args, spark=SparkOptions(master, dict(conf)), **kwargs)

    for option in reversed(_OPTIONS):
        with_spark = option(with_spark)
    return with_spark  # type: ignore[return-value]  # click keeps its own list of parameters


_OPTIONS = (
    click.option(
        "--master",
        metavar="URL",
        help="Where Spark runs, if not as spark-submit says.  [default: local[*]]",
    ),
    click.option(
        "--conf",
        type=attribute,
        multiple=True,
        metavar="NAME=VALUE",
        help="A setting of Spark. May be repeated.",
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
def _told(words: str) -> Iterator[None]:
    """A line on a terminal, while it lasts."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    # A copy of stderr: while Spark starts, the number 2 is a file that Spark logs into.
    with (
        os.fdopen(os.dup(sys.stderr.fileno()), "w") as terminal,
        Console(file=terminal).status(words),
    ):
        yield


def shown(session: Any, words: str, work: Callable[[], T]) -> T:
    """Do the work; on a terminal, show meanwhile how many of its tasks are done."""
    if not sys.stderr.isatty():
        return work()
    from queueber.cli.progress import CountBar

    tasks = _Tasks(session.sparkContext.statusTracker())
    is_over = threading.Event()
    with CountBar(words) as bar, ThreadPoolExecutor(1) as pool:
        # The work stays in this thread, the only one that hears Ctrl-C and that Spark gave the
        # session to.
        pool.submit(_show_until, is_over, lambda: bar.show(*tasks.count()))
        try:
            return work()
        finally:
            is_over.set()


def _show_until(is_over: threading.Event, show: Callable[[], None]) -> None:
    while not is_over.wait(SHOW_SECONDS):
        show()


class _Tasks:
    """How many tasks were done, of how many. Spark forgets stages that are over."""

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
