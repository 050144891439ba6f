"""Keeps commits of loads and checkpoints of the store apart.

A checkpoint has no staged files. If it had half of a commit, its store could not be opened. So
commits that are under way end before a checkpoint is made, and later ones wait until it is.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from queueber.errors import Unavailable
from queueber.limits import BACKUP_WAIT_MS_MAX, SECOND_MS
from queueber.service.shell import Shell, wake


class CommitHold:
    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._commits = 0
        self._holds = 0

    @asynccontextmanager
    async def commit(self) -> AsyncIterator[None]:
        """A commit, which begins once nothing holds it back."""
        while self._holds:
            await self._changed()
        self._commits += 1
        try:
            yield
        finally:
            self._commits -= 1
            self._shell.wakeups.fire(self)

    @asynccontextmanager
    async def hold(self) -> AsyncIterator[None]:
        """No commit is under way; `Unavailable` if one takes longer than a minute to end."""
        self._holds += 1
        try:
            give_up_at = self._shell.loop.time() + BACKUP_WAIT_MS_MAX / SECOND_MS
            while self._commits:
                if self._shell.loop.time() >= give_up_at:
                    raise Unavailable(
                        "a load is being committed, and a backup must not have half of it; begin "
                        "the backup again in a moment"
                    )
                await self._changed()
            yield
        finally:
            self._holds -= 1
            self._shell.wakeups.fire(self)

    async def _changed(self) -> None:
        """Return when a commit or a hold has ended, or a second is over."""
        shell, future = self._shell, self._shell.loop.create_future()
        timer = shell.loop.call_later(1.0, wake, future)
        shell.wakeups.add(self, future)
        try:
            await future
        finally:
            timer.cancel()
            shell.wakeups.discard(self, future)
