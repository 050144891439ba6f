"""Tasks with an end: no task that is started here outlives the block that started it."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
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


class Background:
    """Tasks that run beside the body of an `async with` block, and are cancelled when it ends.

    A task that fails does not interrupt the body, which may have to shut down in order: the body
    learns of it from `wait_failed`.
    """

    def __init__(self) -> None:
        self._group = asyncio.TaskGroup()
        self._tasks: set[asyncio.Task[None]] = set()
        self._failures: list[Exception] = []
        self._has_failed = asyncio.Event()

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        for task in self._tasks:
            task.cancel()
        # Without the error of the body, which the group would wrap into an exception group.
        await self._group.__aexit__(None, None, None)

    def start(self, function: Callable[..., Awaitable[None]], *arguments: object) -> None:
        task = self._group.create_task(self._run(function, arguments))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def wait_failed(self) -> None:
        """Raise the first error of a task, once there is one."""
        await self._has_failed.wait()
        raise self._failures[0]

    async def _run(
        self, function: Callable[..., Awaitable[None]], arguments: tuple[object, ...]
    ) -> None:
        try:
            await function(*arguments)
        except Exception as error:  # noqa: BLE001  `wait_failed` raises it
            self._failures.append(error)
            self._has_failed.set()
