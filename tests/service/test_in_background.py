"""Work in a thread of its own: calls are served meanwhile, and its end belongs to who waits."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from queueber.errors import InvalidArgument
from tests.support.service_rig import ServiceRig, on_service
from tests.support.virtual_loop import turns


@on_service()
async def test_work_runs_in_another_thread_while_the_loop_goes_on(rig: ServiceRig) -> None:
    may_end = threading.Event()

    def work() -> int:
        assert may_end.wait(10)
        return threading.get_ident()

    with ThreadPoolExecutor(1) as thread, rig.loop.time_stands_still():
        shell = rig.restarted(thread).service.shell
        working = asyncio.create_task(shell.in_background(work))
        await turns(20)
        assert not working.done()
        may_end.set()

        assert await working != threading.get_ident()


@on_service()
async def test_what_the_work_raises_is_raised_to_who_waits(rig: ServiceRig) -> None:
    def work() -> None:
        raise InvalidArgument("files: no")

    with ThreadPoolExecutor(1) as thread, rig.loop.time_stands_still():
        shell = rig.restarted(thread).service.shell
        with pytest.raises(InvalidArgument, match="files: no"):
            await shell.in_background(work)
        assert await shell.in_background(lambda: 7) == 7


@on_service()
async def test_work_whose_waiter_has_gone_is_done_all_the_same(rig: ServiceRig) -> None:
    begun, may_end, done = threading.Event(), threading.Event(), []

    def work() -> None:
        begun.set()
        assert may_end.wait(10)
        done.append("done")

    with ThreadPoolExecutor(1) as thread, rig.loop.time_stands_still():
        shell = rig.restarted(thread).service.shell
        working = asyncio.create_task(shell.in_background(work))
        await turns()
        assert begun.wait(10)
        working.cancel()
        await asyncio.wait([working])
        may_end.set()

        await shell.in_background(lambda: None)  # behind it
        assert done == ["done"]


@on_service()
async def test_without_a_thread_the_work_is_done_at_once(rig: ServiceRig) -> None:
    assert await rig.service.shell.in_background(threading.get_ident) == threading.get_ident()
