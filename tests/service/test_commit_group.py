"""Group commit: nobody is answered before the sync that follows the write."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from queueber.clock import ManualClock
from queueber.errors import Internal, Unavailable
from queueber.service.commit_group import CommitGroup
from tests.support.service_rig import HeldSync
from tests.support.virtual_loop import VirtualLoop, run_virtually, turns

Body = Callable[[CommitGroup, HeldSync], Coroutine[Any, Any, None]]


def on_this_loop() -> tuple[VirtualLoop, CommitGroup, HeldSync]:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    sync = HeldSync()
    sync.loop = loop
    return loop, CommitGroup(loop, sync, on_failure=sync.failures.append), sync


def run_with_commits(body: Body) -> None:
    async def main() -> None:
        loop, commits, sync = on_this_loop()
        try:
            with loop.time_stands_still():
                await body(commits, sync)
        finally:
            sync.let_all()
            commits.close()

    run_virtually(ManualClock(), main())


def begin(commits: CommitGroup) -> "asyncio.Task[None]":
    return asyncio.get_running_loop().create_task(commits.wait())


def test_wait_returns_after_the_sync_and_not_before() -> None:
    async def body(commits: CommitGroup, sync: HeldSync) -> None:
        waiting = begin(commits)
        await sync.wait_begun(1)
        await turns(10)
        assert not waiting.done()

        sync.let()

        await waiting
        assert commits.syncs_total == 1

    run_with_commits(body)


def test_wait_of_many_in_one_turn_shares_one_sync() -> None:
    async def body(commits: CommitGroup, sync: HeldSync) -> None:
        waiting = [begin(commits) for _ in range(500)]
        await sync.wait_begun(1)
        await turns()
        assert not any(each.done() for each in waiting)

        sync.let()

        await asyncio.gather(*waiting)
        assert commits.syncs_total == sync.begun == 1

    run_with_commits(body)


def test_wait_that_begins_during_a_sync_is_not_answered_by_it() -> None:
    """That sync may have passed over the write: only one that began after it will do."""

    async def body(commits: CommitGroup, sync: HeldSync) -> None:
        early = begin(commits)
        await sync.wait_begun(1)
        late = [begin(commits) for _ in range(50)]
        await turns()

        sync.let()
        await early
        await sync.wait_begun(2)
        await turns(10)
        assert not any(each.done() for each in late)
        sync.let()

        await asyncio.gather(*late)
        assert commits.syncs_total == sync.begun == 2

    run_with_commits(body)


def test_waits_one_after_another_have_a_sync_each() -> None:
    async def body(commits: CommitGroup, sync: HeldSync) -> None:
        for count in range(1, 6):
            sync.let()
            await commits.wait()
            assert commits.syncs_total == count

    run_with_commits(body)


def test_sync_runs_in_a_thread_of_its_own() -> None:
    async def main() -> None:
        threads: list[int] = []
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        commits = CommitGroup(
            loop, lambda: threads.append(threading.get_ident()), on_failure=lambda _: None
        )
        with loop.time_stands_still():
            await commits.wait()
            await commits.wait()
        commits.close()

        assert len(threads) == 2
        assert len(set(threads)) == 1
        assert threads[0] != threading.get_ident()

    run_virtually(ManualClock(), main())


class _TimedSync:
    """A sync that takes as long as is said, by a clock of its own."""

    def __init__(self) -> None:
        self.now = 0.0
        self.takes = 0.0001
        self.threads: list[int] = []
        self.failures: list[Exception] = []
        """Those of the next syncs."""

    def __call__(self) -> None:
        self.threads.append(threading.get_ident())
        self.now += self.takes
        if self.failures:
            raise self.failures.pop(0)

    def seconds(self) -> float:
        return self.now


def run_with_timed_sync(
    body: Callable[[CommitGroup, _TimedSync, list[BaseException]], Coroutine[Any, Any, None]],
) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        sync, failures = _TimedSync(), list[BaseException]()
        commits = CommitGroup(loop, sync, on_failure=failures.append, seconds=sync.seconds)
        try:
            with loop.time_stands_still():
                await body(commits, sync, failures)
        finally:
            commits.close()

    run_virtually(ManualClock(), main())


def are_here(sync: _TimedSync) -> list[bool]:
    """Of each sync, whether it ran on this thread."""
    return [thread == threading.get_ident() for thread in sync.threads]


def test_sync_runs_on_the_loops_thread_once_many_were_short() -> None:
    async def body(commits: CommitGroup, sync: _TimedSync, __: list[BaseException]) -> None:
        for _ in range(18):
            await commits.wait()

        assert are_here(sync) == [False] * 16 + [True] * 2

    run_with_timed_sync(body)


def test_sync_for_many_items_runs_in_the_thread_however_short() -> None:
    async def body(commits: CommitGroup, sync: _TimedSync, __: list[BaseException]) -> None:
        for items in [1] * 16 + [64, 65, 64]:
            future = asyncio.get_running_loop().create_future()
            commits.answer(future, "done", items)
            assert await future == "done"

        assert are_here(sync) == [False] * 16 + [True, False, True]

    run_with_timed_sync(body)


def test_sync_that_took_long_sends_the_next_ones_to_the_thread() -> None:
    async def body(commits: CommitGroup, sync: _TimedSync, __: list[BaseException]) -> None:
        for _ in range(16):
            await commits.wait()
        sync.takes = 0.1
        await commits.wait()
        sync.takes = 0.0001
        for _ in range(17):
            await commits.wait()

        assert are_here(sync) == [False] * 16 + [True] + [False] * 16 + [True]

    run_with_timed_sync(body)


def test_sync_on_the_loops_thread_that_finds_the_disk_full_is_tried_again_in_the_thread() -> None:
    async def body(commits: CommitGroup, sync: _TimedSync, __: list[BaseException]) -> None:
        for _ in range(16):
            await commits.wait()
        sync.failures.append(Unavailable("the disk is full"))
        await commits.wait()

        assert are_here(sync) == [False] * 16 + [True, False]

    run_with_timed_sync(body)


def test_sync_that_fails_on_the_loops_thread_is_internal_and_stops_the_server() -> None:
    async def body(commits: CommitGroup, sync: _TimedSync, failures: list[BaseException]) -> None:
        for _ in range(16):
            await commits.wait()
        broken = OSError("the disk is gone")
        sync.failures.append(broken)
        waiting = [begin(commits), begin(commits)]

        for each in [*waiting, begin(commits)]:
            with pytest.raises(Internal, match="the disk is gone"):
                await each
        assert are_here(sync) == [False] * 16 + [True]
        assert failures == [broken]

    run_with_timed_sync(body)


class _CountedWaits(threading.Event):
    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float | None] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.waits.append(timeout)
        return super().wait(timeout)


def test_loop_lets_the_thread_have_the_interpreter_while_a_sync_takes_long() -> None:
    """A loop that is never idle keeps a thread that waits for the interpreter from waking up."""
    is_closing = _CountedWaits()
    naps = is_closing.waits

    async def main() -> None:
        loop, commits, sync = on_this_loop()
        commits._is_closing = is_closing
        with loop.time_stands_still():
            waiting = begin(commits)
            await sync.wait_begun(1)
        assert naps == []

        await asyncio.sleep(0.010)
        assert len(naps) in (9, 10)
        await asyncio.sleep(1)
        assert len(naps) in range(30, 40)  # it is the disk that takes long

        sync.let()
        with loop.time_stands_still():
            await waiting
        count = len(naps)
        await asyncio.sleep(1)
        assert (len(naps), loop.timers()) == (count, 0)
        commits.close()

    run_virtually(ManualClock(), main())


def test_close_during_a_sync_leaves_no_timer() -> None:
    async def main() -> None:
        loop, commits, sync = on_this_loop()
        with loop.time_stands_still():
            waiting = [begin(commits)]
            await sync.wait_begun(1)
            waiting.append(begin(commits))
            await turns()
        sync.let()
        commits.close()
        await turns()
        assert loop.timers() == 0
        for each in waiting:
            each.cancel()

    run_virtually(ManualClock(), main())


def test_wait_that_is_cancelled_leaves_the_others_as_they_are() -> None:
    async def body(commits: CommitGroup, sync: HeldSync) -> None:
        gone, stays = begin(commits), begin(commits)
        await sync.wait_begun(1)

        gone.cancel()
        await asyncio.wait([gone])
        sync.let()

        await stays
        assert gone.cancelled()

    run_with_commits(body)


def test_wait_after_all_of_a_group_were_cancelled_still_gets_its_sync() -> None:
    async def body(commits: CommitGroup, sync: HeldSync) -> None:
        gone = begin(commits)
        await sync.wait_begun(1)
        gone.cancel()
        await asyncio.wait([gone])
        later = begin(commits)
        await turns()

        sync.let()
        await sync.wait_begun(2)
        sync.let()

        await later

    run_with_commits(body)


def test_failed_sync_is_told_to_all_who_wait_and_to_all_who_come() -> None:
    async def body(commits: CommitGroup, sync: HeldSync) -> None:
        in_sync = [begin(commits) for _ in range(3)]
        await sync.wait_begun(1)
        gathered = [begin(commits) for _ in range(3)]
        await turns()

        sync.fail(OSError("no space left"))
        outcomes = await asyncio.gather(*in_sync, *gathered, return_exceptions=True)

        assert [type(each) for each in outcomes] == [Internal] * 6
        assert "could not be synced (no space left)" in str(outcomes[0])
        for _ in range(3):
            with pytest.raises(Internal, match="no space left"):
                await commits.wait()
        assert sync.begun == 1, "nothing is synced after a failure"

    run_with_commits(body)


def test_failed_sync_is_reported_once() -> None:
    async def body(commits: CommitGroup, sync: HeldSync) -> None:
        failure = OSError("broken")
        waiting = [begin(commits) for _ in range(3)]
        await sync.wait_begun(1)
        waiting.append(begin(commits))
        await turns()

        sync.fail(failure)
        await asyncio.wait(waiting)
        with pytest.raises(Internal):
            await commits.wait()
        await turns(10)

        assert sync.failures == [failure]
        for each in waiting:
            assert isinstance(each.exception(), Internal)

    run_with_commits(body)


def test_close_waits_for_the_sync_under_way_and_ends_the_thread() -> None:
    async def main() -> None:
        loop, commits, sync = on_this_loop()
        before = threading.active_count()
        with loop.time_stands_still():
            waiting = begin(commits)
            await sync.wait_begun(1)
        sync.let()

        commits.close()

        assert threading.active_count() == before - 1
        await waiting

    run_virtually(ManualClock(), main())
