"""Coroutines of trio, in a nursery on a thread of its own."""

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import Future

import trio

from queueber.worker.handlers.coroutine_runners import AsyncCall, CoroutineRunner
from queueber.worker.handlers.runner import CANCEL_SECONDS_MAX, OnFinished
from queueber.worker.handlers.time_limit import TimeLimit
from queueber.worker.handlers.work_item import HeldLease, Outcome, Unfinished, WorkItem, failure_of


def is_cancellation(error: BaseException) -> bool:
    """Also true for the exception group that a nursery inside the handler raises."""
    if isinstance(error, BaseExceptionGroup):
        return error.subgroup(trio.Cancelled) is not None
    return isinstance(error, trio.Cancelled)


class TrioRunner(CoroutineRunner):
    def __init__(
        self,
        call: AsyncCall,
        concurrency: int,
        on_finished: OnFinished,
        limit: TimeLimit | None = None,
    ) -> None:
        call_soon = asyncio.get_running_loop().call_soon_threadsafe
        super().__init__(call, concurrency, call_soon, on_finished, limit)
        began: Future[None] = Future()
        self._ended: Future[None] = Future()
        threading.Thread(
            target=self._run_trio, args=(began,), name="queueber-handlers", daemon=True
        ).start()
        began.result()

    # --- on the loop of the pool ------------------------------------------------------------------

    def put(self, items: Sequence[WorkItem]) -> None:
        super().put(items)
        self._token.run_sync_soon(self._begin, idempotent=True)

    def cancel(self, lease: HeldLease | None = None) -> None:
        self._token.run_sync_soon(super().cancel, lease)

    def _cancel_item(self, item: WorkItem) -> None:
        self._token.run_sync_soon(super()._cancel_item, item)

    async def close(self) -> None:
        self._token.run_sync_soon(self._nursery.cancel_scope.cancel)
        await asyncio.wait([asyncio.wrap_future(self._ended)], timeout=CANCEL_SECONDS_MAX)

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

    def _start(self, item: WorkItem) -> trio.CancelScope:
        scope = trio.CancelScope()
        self._nursery.start_soon(self._run, item, scope)
        return scope

    async def _run(self, item: WorkItem, scope: trio.CancelScope) -> None:
        outcome: Outcome = Unfinished.CANCELLED
        try:
            with scope:
                outcome = await self._call(item)
        except BaseException as error:
            # The nursery was cancelled; or a cancelled handler raised while it cleaned up.
            if is_cancellation(error):
                raise
            outcome = failure_of(error)
        finally:
            self._end(item, outcome)
