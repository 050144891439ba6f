"""Tasks end with the block that started them."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest

import queueber
from queueber.testing import ServerProcess
from queueber.worker.pool.background import Background, first_of
from queueber.worker.pool.pool import Pool
from queueber.worker.progress import make_event_logger


class Hanging:
    """Runs until it is cancelled, and remembers that it was."""

    def __init__(self) -> None:
        self.was_cancelled = False

    async def run(self) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise


async def returns(value: object) -> object:
    return value


async def raises() -> None:
    raise ValueError("no")


def run_alone(make: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run it, and see that no task is left."""

    async def main() -> None:
        await make()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


def test_first_of_returns_what_the_first_returned_and_cancels_the_others() -> None:
    hanging = Hanging()

    async def main() -> None:
        assert await first_of(hanging.run(), returns(3)) == 3

    run_alone(main)
    assert hanging.was_cancelled


def test_first_of_raises_the_error_itself_and_cancels_the_others() -> None:
    hanging = Hanging()

    async def main() -> None:
        with pytest.raises(ValueError, match="no"):
            await first_of(hanging.run(), raises())

    run_alone(main)
    assert hanging.was_cancelled


def test_first_of_returns_none_after_its_time() -> None:
    hanging = Hanging()

    async def main() -> None:
        assert await first_of(hanging.run(), seconds=0.001) is None

    run_alone(main)
    assert hanging.was_cancelled


def test_background_tasks_are_cancelled_when_the_body_ends_or_raises() -> None:
    ended, raised = Hanging(), Hanging()

    async def start(hanging: Hanging, error: Exception | None) -> None:
        async with Background() as background:
            background.start(hanging.run)
            await asyncio.sleep(0)
            if error is not None:
                raise error

    async def main() -> None:
        await start(ended, None)
        with pytest.raises(KeyError):
            await start(raised, KeyError())

    run_alone(main)
    assert ended.was_cancelled
    assert raised.was_cancelled


def test_a_background_task_that_fails_does_not_interrupt_the_body() -> None:
    hanging = Hanging()

    async def main() -> None:
        async with Background() as background:
            background.start(raises)
            background.start(hanging.run)
            for _ in range(3):
                await asyncio.sleep(0)
            assert not hanging.was_cancelled
            with pytest.raises(ValueError, match="no"):
                await background.wait_failed()

    run_alone(main)


def test_a_pool_leaves_no_task_behind(server: ServerProcess, queue: queueber.Queue) -> None:
    queue.add([b"x"] * 20)

    async def handle(item: queueber.WorkItem) -> bytes:
        return item.contents

    worker = queueber.Worker(server.address, queue=queue.name, handler=handle)

    settings = replace(worker._settings, until="empty")
    run_alone(Pool(settings, make_event_logger()).run)

    assert queue.stats().completed_total == 20
