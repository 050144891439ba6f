"""A handle of a job that was enqueued: its id, and its result once it is done."""

from collections.abc import Generator
from typing import Any, Generic, TypeVar

from queueber.client.transport.futures import wait_for_async, wait_for_async_up_to
from queueber.errors import InvalidArgument
from queueber.jobs.job import Job
from queueber.jobs.result_readers import Expected, QueueResults
from queueber.limits import ID_BYTES
from queueber.worker.handlers.work_item import Duration, to_seconds

R = TypeVar("R")


class Handle(Generic[R]):
    """One job that was enqueued. `App.enqueue` makes it; `await handle` is its result, too."""

    def __init__(self, job: Job[..., R], results: QueueResults, expected: Expected) -> None:
        self.job = job
        self.id = expected.id
        self._results = results
        self._expected = expected

    def __repr__(self) -> str:
        return f"<Handle of {self.job.name!r} {self.id.hex()}>"

    def result(self, timeout: Duration | None = None) -> R:
        """What the job returned, of the type that it is annotated with. Waits until it is done.

        Raises `JobDied` if it failed for the last time, `JobGone` if it is not there any more, and
        `TimeoutError` after `timeout` seconds.
        """
        seconds = _to_timeout(timeout)
        future = self._results.wait(self._expected)
        try:
            return self._decoded(future.result(seconds))
        except TimeoutError:
            if seconds is None or future.done():
                raise
            raise self._timed_out(seconds) from None
        finally:
            self._results.stop_waiting(self._expected, future)

    async def result_async(self, timeout: Duration | None = None) -> R:  # noqa: ASYNC109  as `result`
        """As `result`, awaited, in asyncio or trio."""
        seconds = _to_timeout(timeout)
        future = self._results.wait(self._expected)
        try:
            if seconds is None or future.done():
                return self._decoded(await wait_for_async(future))
            found = await wait_for_async_up_to(future, seconds)
        finally:
            self._results.stop_waiting(self._expected, future)
        if found is None:
            raise self._timed_out(seconds)
        return self._decoded(found)

    def __await__(self) -> Generator[Any, None, R]:
        return self.result_async().__await__()

    def _timed_out(self, seconds: float) -> TimeoutError:
        return TimeoutError(f"{self.job.name} has no result after {seconds:g} s")

    def _decoded(self, result: bytes) -> R:
        decoded: R = self.job.decode_result(result)
        return decoded


def _to_timeout(timeout: Duration | None) -> float | None:
    return None if timeout is None else to_seconds("timeout", timeout)


def to_item_id(given: object) -> bytes:
    try:
        found = bytes.fromhex(given) if isinstance(given, str) else given
    except ValueError:
        found = None
    if not isinstance(found, bytes) or len(found) != ID_BYTES:
        raise InvalidArgument(f"item_id: {given!r} is not the id of an item")
    return found
