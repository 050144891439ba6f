"""Tasks with an end: no task that is started here outlives the block that started it."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Self


async def first_of(*coroutines: Coroutine[Any, Any, object], seconds: float | None = None) -> Any:
    """Run all at once and return what the first one returns, or None after `seconds`.

    The others are cancelled, and have ended when this returns or raises.
    """
    try:
        async with asyncio.timeout(seconds), asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in coroutines]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                task.cancel()
    except TimeoutError:
        return None
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return next(task.result() for task in tasks if not task.cancelled())


async def all_of(*coroutines: Coroutine[Any, Any, None]) -> None:
    """Run all at once, until all have returned; if one raises, the others are cancelled."""
    try:
        async with asyncio.TaskGroup() as group:
            for each in coroutines:
                group.create_task(each)
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None


class Background:
    """Endless tasks that run beside the body of an `async with` block, and are cancelled with it.

    A task that fails does not interrupt the body, which may have to shut down in order: the body
    learns of it from `wait_failed`.
    """

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def start(self, function: Callable[..., Coroutine[Any, Any, None]], *arguments: object) -> None:
        self._tasks.append(asyncio.create_task(function(*arguments)))

    async def wait_failed(self) -> None:
        """Raise the first error of the tasks started so far, once there is one."""
        done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in done:
            task.result()
