"""Progress bars on stderr. Importing them loads rich, so commands do it when they need a bar."""

import os
import stat
import sys
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)

from queueber.cli.output.text import counted


class _Bar:
    def __init__(self, words: str, total: int | None, *extent: ProgressColumn) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            *extent,
            TimeElapsedColumn(),
            console=Console(stderr=True),
        )
        self._task = self._progress.add_task(words, total=total)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._progress.stop()


class CountBar(_Bar):
    """Shows `done` of `total`."""

    def __init__(self, words: str) -> None:
        super().__init__(words, None, BarColumn(), MofNCompleteColumn())

    def show(self, done: int, total: int | None) -> None:
        self._progress.update(self._task, completed=done, total=total)


class InputBar(_Bar):
    """Shows items and their rate; when stdin is a file, also how much of it was read."""

    def __init__(self) -> None:
        self._items = 0
        total_bytes = _stdin_bytes()
        extent = [] if total_bytes is None else [BarColumn(), DownloadColumn()]
        super().__init__("0 items", total_bytes, *extent)

    def advance(self, items: int, byte_count: int) -> None:
        self._items += items
        elapsed = self._progress.tasks[0].elapsed
        rate = self._items / elapsed if elapsed else 0
        self._progress.update(
            self._task,
            advance=byte_count,
            description=f"{counted(self._items, 'item')}, {rate:,.0f}/s",
        )


def _stdin_bytes() -> int | None:
    """The size of stdin when it is a file, else None."""
    status = os.fstat(sys.stdin.fileno())
    return status.st_size if stat.S_ISREG(status.st_mode) else None
