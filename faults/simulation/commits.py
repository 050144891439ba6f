"""Group commit on the simulated disk: a sync is a step whose duration the scheduler decides."""

import contextlib
from collections.abc import Callable

from faults.simulation.disk import Crashed, Disk
from faults.simulation.loop import SimulatedLoop
from queueber.service.commit_group import CommitGroup, Waiting


class SimulatedCommits(CommitGroup):
    """The real group commit, with the loop instead of its thread."""

    def __init__(
        self,
        loop: SimulatedLoop,
        disk: Disk,
        sync_seconds: Callable[[], float],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self._disk = disk
        self._sync_seconds = sync_seconds
        super().__init__(loop, self._sync_nothing, on_failure=on_failure)

    @staticmethod
    def _sync_nothing() -> None:
        raise AssertionError("syncs are steps of the loop")

    def _start_thread(self) -> None:
        """There is no thread to stop."""

    def _request_sync(self) -> None:
        # The server may crash while it writes what was gathered. The loop is not told.
        with contextlib.suppress(Crashed):
            super()._request_sync()

    def _hand_to_thread(self, group: list[Waiting]) -> None:
        self._loop.call_later(self._sync_seconds(), self._synced, group, self._disk.written)

    def _synced(self, group: list[Waiting], written: int) -> None:
        if self._disk.is_dead:
            return
        if self._disk.is_broken:
            self._finish(group, OSError("the disk is broken"))
        else:
            self._disk.sync(written)
            self._finish(group, None)
