"""Work in a thread of its own: calls are served meanwhile, and its end belongs to who waits."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from queueber.clock import ManualClock
from queueber.errors import InvalidArgument
from queueber.service.background_thread import BackgroundThread
from tests.support.virtual_loop import VirtualLoop, run_virtually, turns

Body = Callable[[BackgroundThread], Coroutine[Any, Any, None]]


def run_in_background(body: Body) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        background = BackgroundThread(loop)
        try:
            with loop.time_stands_still():
                await body(background)
        finally:
            background.close()

    run_virtually(ManualClock(), main())


def test_work_runs_in_another_thread_while_the_loop_goes_on() -> None:
    async def body(background: BackgroundThread) -> None:
        may_end = threading.Event()

        def work() -> int:
            assert may_end.wait(10)
            return threading.get_ident()

        working = asyncio.create_task(background.run(work))
        await turns(20)
        assert not working.done()
        may_end.set()

        assert await working != threading.get_ident()

    run_in_background(body)


def test_what_the_work_raises_is_raised_to_who_waits() -> None:
    async def body(background: BackgroundThread) -> None:
        def work() -> None:
            raise InvalidArgument("files: no")

        with pytest.raises(InvalidArgument, match="files: no"):
            await background.run(work)
        assert await background.run(lambda: 7) == 7

    run_in_background(body)


def test_one_work_at_a_time_in_the_order_of_asking() -> None:
    async def body(background: BackgroundThread) -> None:
        order: list[str] = []

        def work(name: str) -> None:
            order.append(f"{name} begins")
            order.append(f"{name} ends")

        await asyncio.gather(*[background.run(lambda name=name: work(name)) for name in "abc"])  # type: ignore[misc]

        assert order == [f"{name} {what}" for name in "abc" for what in ("begins", "ends")]

    run_in_background(body)


def test_work_whose_waiter_has_gone_is_done_all_the_same() -> None:
    async def body(background: BackgroundThread) -> None:
        may_end, done = threading.Event(), []

        def work() -> None:
            assert may_end.wait(10)
            done.append("done")

        working = asyncio.create_task(background.run(work))
        await turns()
        working.cancel()
        await asyncio.wait([working])
        may_end.set()

        await background.run(lambda: None)  # behind it
        assert done == ["done"]

    run_in_background(body)


def test_close_waits_for_the_work_under_way() -> None:
    async def body(background: BackgroundThread) -> None:
        begun, may_end, done = threading.Event(), threading.Event(), []

        def work() -> None:
            begun.set()
            assert may_end.wait(10)
            done.append("done")

        working = asyncio.create_task(background.run(work))
        await turns()
        assert begun.wait(10)
        threading.Timer(0.01, may_end.set).start()

        background.close()

        assert done == ["done"]
        await working

    run_in_background(body)
