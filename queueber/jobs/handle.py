"""A handle of a job that was enqueued: its id, and its result once it is done."""

import threading
from collections.abc import Generator
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from queueber.client.transport.futures import fail_future, wait_for_async
from queueber.errors import InvalidArgument
from queueber.jobs.job import Job
from queueber.limits import ID_BYTES
from queueber.worker.handlers.work_item import Duration, to_seconds

if TYPE_CHECKING:
    from queueber.jobs.result_readers import QueueResults

R = TypeVar("R")


class JobDied(Exception):
    """The job failed for the last time, and is a dead letter. `error` is that of its last attempt.

    Not a `QueueberError`: no call failed.
    """

    def __init__(self, job: str, error: str, attempts: int) -> None:
        super().__init__(f"{job} failed for the last time, at attempt {attempts}: {error}")
        self.job = job
        self.error = error
        self.attempts = attempts


class Expected:
    """The result that handles of one item wait for. A `QueueResults` sets it."""

    def __init__(self, job: str, item_id: bytes, *, is_ahead: bool) -> None:
        self.job = job
        self.id = item_id
        self.is_ahead = is_ahead
        """If there is a result, it is at an offset that was not read yet."""
        self.outcome: bytes | None = None
        """The result, once it was read."""
        self.futures: list[Future[bytes]] = []


class Handle(Generic[R]):
    """One job that was enqueued. `App.enqueue` makes it; `await handle` is its result, too."""

    def __init__(self, job: Job[..., R], results: "QueueResults", expected: Expected) -> None:
        self.job = job
        self.id = expected.id
        self._results = results
        self._expected = expected

    def __repr__(self) -> str:
        return f"<Handle of {self.job.name!r} {self.id.hex()}>"

    def result(self, timeout: Duration | None = None) -> R:
        """What the job returned, of the type that it is annotated with. Waits until it is done.

        Raises `JobDied` if it failed for the last time, and `TimeoutError` after `timeout` seconds.
        """
        future = self._results.wait(self._expected)
        seconds = None if timeout is None else to_seconds("timeout", timeout)
        try:
            return self._decoded(future.result(seconds))
        except TimeoutError:
            raise TimeoutError(f"{self.job.name} has no result after {seconds:g} s") from None
        finally:
            self._results.stop_waiting(self._expected, future)

    async def result_async(self, timeout: Duration | None = None) -> R:  # noqa: ASYNC109  as `result`
        """As `result`, awaited, in asyncio or trio."""
        future = self._results.wait(self._expected)
        seconds = None if timeout is None else to_seconds("timeout", timeout)
        timer = None
        if seconds is not None:
            error = TimeoutError(f"{self.job.name} has no result after {seconds:g} s")
            timer = threading.Timer(seconds, fail_future, (future, error))
            timer.daemon = True
            timer.start()
        try:
            return self._decoded(await wait_for_async(future))
        finally:
            if timer is not None:
                timer.cancel()
            self._results.stop_waiting(self._expected, future)

    def __await__(self) -> Generator[Any, None, R]:
        return self.result_async().__await__()

    def _decoded(self, result: bytes) -> R:
        decoded: R = self.job.decode_result(result)
        return decoded


def to_item_id(given: object) -> bytes:
    try:
        found = bytes.fromhex(given) if isinstance(given, str) else given
    except ValueError:
        found = None
    if not isinstance(found, bytes) or len(found) != ID_BYTES:
        raise InvalidArgument(f"item_id: {given!r} is not the id of an item")
    return found
