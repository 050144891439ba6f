"""Coroutines of trio, in a nursery on a thread of its own."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from typing import Any

import trio

from queueber.worker.handlers.handler_outcome import Failed, Outcome, Unfinished, failure_of
from queueber.worker.handlers.runner import CANCEL_SECONDS_MAX, FinishedQueue, OnFinished
from queueber.worker.work_item import HeldLease, WorkItem


def is_cancellation(error: BaseException) -> bool:
    """Also true for the exception group that a nursery inside the handler raises."""
    if isinstance(error, BaseExceptionGroup):
        return error.subgroup(trio.Cancelled) is not None
    return isinstance(error, trio.Cancelled)


class TrioRunner:
    can_cancel = True

    def __init__(
        self,
        call: Callable[[WorkItem], Coroutine[Any, Any, bytes | Failed]],
        concurrency: int,
        on_finished: OnFinished,
    ) -> None:
        self._call = call
        self._concurrency = concurrency
        self._waiting: deque[WorkItem] = deque()
        self._scopes: dict[WorkItem, trio.CancelScope] = {}
        self._finished = FinishedQueue(asyncio.get_running_loop(), on_finished)
        began: Future[None] = Future()
        self._ended: Future[None] = Future()
        threading.Thread(
            target=self._run_trio, args=(began,), name="queueber-handlers", daemon=True
        ).start()
        began.result()

    # --- on the loop of the pool ------------------------------------------------------------------

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def put(self, items: Sequence[WorkItem]) -> None:
        self._waiting.extend(items)
        self._token.run_sync_soon(self._begin, idempotent=True)

    def withdraw(self) -> list[WorkItem]:
        taken: list[WorkItem] = []
        while (item := self._next()) is not None:
            taken.append(item)
        return taken

    def cancel(self, lease: HeldLease | None = None) -> None:
        self._token.run_sync_soon(self._cancel, lease)

    async def close(self) -> None:
        self._token.run_sync_soon(self._nursery.cancel_scope.cancel)
        await asyncio.wait([asyncio.wrap_future(self._ended)], timeout=CANCEL_SECONDS_MAX)

    def _next(self) -> WorkItem | None:
        """Both threads take items, so the check for emptiness and the pop must be one step."""
        try:
            return self._waiting.popleft()
        except IndexError:
            return None

    # --- on the thread of trio --------------------------------------------------------------------

    def _run_trio(self, began: "Future[None]") -> None:
        try:
            trio.run(self._main, began)
        finally:
            self._ended.set_result(None)

    async def _main(self, began: "Future[None]") -> None:
        async with trio.open_nursery() as self._nursery:
            self._token = trio.lowlevel.current_trio_token()
            began.set_result(None)
            await trio.sleep_forever()

    def _begin(self) -> None:
        while len(self._scopes) < self._concurrency and (item := self._next()) is not None:
            if item.lease.is_lost:
                self._finished.put(item, Unfinished.NOT_BEGUN)
            else:
                self._scopes[item] = trio.CancelScope()
                self._nursery.start_soon(self._run, item)

    async def _run(self, item: WorkItem) -> None:
        outcome: Outcome = Unfinished.CANCELLED
        try:
            with self._scopes[item]:
                outcome = await self._call(item)
        except BaseException as error:
            # The nursery was cancelled; or a cancelled handler raised while it cleaned up.
            if is_cancellation(error):
                raise
            outcome = failure_of(error)
        finally:
            del self._scopes[item]
            self._finished.put(item, outcome)
            self._begin()

    def _cancel(self, lease: HeldLease | None) -> None:
        for item, scope in list(self._scopes.items()):
            if lease is None or item.lease is lease:
                scope.cancel()
