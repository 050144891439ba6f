"""Commits of loads and checkpoints: never at the same time, and none waits without end."""

import asyncio
from contextlib import AbstractAsyncContextManager

import pytest

from queueber.errors import Unavailable
from queueber.limits import BACKUP_WAIT_MS_MAX
from queueber.service.commit_hold import CommitHold
from tests.support.service_rig import ServiceRig, on_service
from tests.support.virtual_loop import turns


class Under:
    """Enters one side of a hold, and stays until it is told to leave."""

    def __init__(self, side: AbstractAsyncContextManager[None]) -> None:
        self._side = side
        self.has_entered = False
        self._may_leave = asyncio.Event()
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        async with self._side:
            self.has_entered = True
            await self._may_leave.wait()

    async def leave(self) -> None:
        self._may_leave.set()
        await self._task


@on_service()
async def test_hold_waits_for_commits_and_later_commits_wait_for_it(rig: ServiceRig) -> None:
    hold = CommitHold(rig.service.shell)
    first, second = Under(hold.commit()), Under(hold.commit())
    await turns()
    assert first.has_entered
    assert second.has_entered

    checkpoint = Under(hold.hold())
    later = Under(hold.commit())
    await turns()
    await first.leave()
    await turns()
    assert not checkpoint.has_entered
    await second.leave()
    await turns()
    assert checkpoint.has_entered
    assert not later.has_entered

    await checkpoint.leave()
    await turns()
    assert later.has_entered
    await later.leave()


@on_service()
async def test_hold_gives_up_on_a_commit_that_takes_too_long_and_holds_nothing_back(
    rig: ServiceRig,
) -> None:
    hold = CommitHold(rig.service.shell)
    commit = Under(hold.commit())
    await turns()
    began_ms = rig.clock.now_ms()

    with pytest.raises(Unavailable, match="a load is being committed"):
        async with hold.hold():
            pass

    assert rig.clock.now_ms() - began_ms == BACKUP_WAIT_MS_MAX
    another = Under(hold.commit())
    await turns()
    assert another.has_entered
    await commit.leave()
    await another.leave()
