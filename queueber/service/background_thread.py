"""The background thread: does work that takes long while calls are served."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from queueber.service.loop import Future, Loop

T = TypeVar("T")


class BackgroundThread:
    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        # One thread: what runs here reads whole files, and two of them would only share the disk.
        self._executor = ThreadPoolExecutor(1, "queueber-background")

    async def run(self, work: Callable[[], T]) -> T:
        """What the work returns, or raises."""
        future = self._loop.create_future()
        self._executor.submit(self._work, work, future)
        answer: T = await future
        return answer

    def _work(self, work: Callable[[], T], future: Future) -> None:
        try:
            answer, error = work(), None
        except BaseException as failure:  # noqa: BLE001  it belongs to whoever waits
            answer, error = None, failure
        self._loop.call_soon_threadsafe(_settle, future, answer, error)

    def close(self) -> None:
        """End the thread, after the work under way."""
        self._executor.shutdown(cancel_futures=True)


def _settle(future: Future, answer: object, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(answer)
    else:
        future.set_exception(error)
