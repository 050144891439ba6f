"""Progress on a terminal: bars on stderr that move while a command or the server works.

rich draws them. It is imported when a bar is shown, because the import takes a tenth of a second.
"""

import contextlib
import os
import stat
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

from queueber import Client, Queue
from queueber.cli.output import counted

REFRESH_SECONDS = 0.25
"""How often a bar moves."""


@contextlib.contextmanager
def count_bar(title: str) -> Iterator[Callable[[int, int | None], None]]:
    """A bar; calling what this yields shows how many are done, of how many."""
    from rich import progress

    with _bar(title, None, progress.BarColumn(), progress.MofNCompleteColumn()) as (bar, task):
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextlib.contextmanager
def bytes_bar(title: str) -> Iterator[Callable[[int, int], None]]:
    """A bar; calling what this yields shows how many bytes are done, of how many."""
    from rich import progress

    extent = (progress.BarColumn(), progress.DownloadColumn(), progress.TransferSpeedColumn())
    with _bar(title, None, *extent) as (bar, task):
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextlib.contextmanager
def input_bar() -> Iterator[Callable[[int, int], None]]:
    """Shows items and their rate; when stdin is a file, also how much of it was read.

    Calling what this yields adds items, and bytes of input.
    """
    from rich import progress

    status = os.fstat(sys.stdin.fileno())
    is_file = stat.S_ISREG(status.st_mode)
    extent = [progress.BarColumn(), progress.DownloadColumn()] if is_file else []
    items = 0

    def advance(more_items: int, byte_count: int) -> None:
        nonlocal items
        items += more_items
        elapsed = bar.tasks[0].elapsed
        rate = items / elapsed if elapsed else 0
        words = f"{counted(items, 'item')}, {rate:,.0f}/s"
        bar.update(task, advance=byte_count, description=words)

    with _bar("0 items", status.st_size if is_file else None, *extent) as (bar, task):
        yield advance


@contextlib.contextmanager
def _bar(words: str, total: int | None, *extent: Any) -> Iterator[tuple[Any, Any]]:
    """The bar and its only task."""
    from rich import progress
    from rich.console import Console

    columns = (progress.TextColumn("{task.description}"), *extent, progress.TimeElapsedColumn())
    bar = progress.Progress(*columns, console=Console(stderr=True))
    task = bar.add_task(words, total=total)
    with bar:
        yield bar, task


def with_progress(
    client: Client, queue: Queue, title: str, total: int, work: Callable[[], int], counter: str
) -> int:
    """Run `work`; on a terminal, show how far it is by a counter of the queue's statistics."""
    if not sys.stderr.isatty():
        return work()
    start = getattr(queue.stats(), counter)
    with ThreadPoolExecutor(1) as pool, count_bar(title) as show:
        working = pool.submit(work)
        try:
            while not wait([working], REFRESH_SECONDS).done:
                show(getattr(queue.stats(), counter) - start, total)
        except BaseException:
            # Otherwise leaving the pool would wait until the work is done.
            client.close()
            raise
        show(working.result(), total)
        return working.result()
