"""Plain functions, in threads."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue

from queueber.worker.handlers.handler_outcome import Failed, Unfinished
from queueber.worker.handlers.runner import FinishedQueue, OnFinished
from queueber.worker.work_item import HeldLease, WorkItem


class ThreadRunner:
    """The threads take items from one queue, so the loop is not involved between two items."""

    can_cancel = False

    def __init__(
        self,
        call: Callable[[WorkItem], bytes | Failed],
        concurrency: int,
        on_finished: OnFinished,
    ) -> None:
        self._call = call
        self._waiting: SimpleQueue[WorkItem | None] = SimpleQueue()
        self._finished = FinishedQueue(asyncio.get_running_loop(), on_finished)
        # Daemons: a handler that never ends must not keep the program from ending.
        self._threads = [
            threading.Thread(target=self._work, name=f"queueber-handler-{number}", daemon=True)
            for number in range(concurrency)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def waiting(self) -> int:
        return self._waiting.qsize()

    def put(self, items: Sequence[WorkItem]) -> None:
        for item in items:
            self._waiting.put(item)

    def withdraw(self) -> list[WorkItem]:
        taken: list[WorkItem] = []
        try:
            while (item := self._waiting.get_nowait()) is not None:
                taken.append(item)
        except Empty:
            pass
        return taken

    def cancel(self, lease: HeldLease | None = None) -> None:
        """Nothing can end a thread; the handler may look at `item.is_lost`."""

    async def close(self) -> None:
        for _ in self._threads:
            self._waiting.put(None)

    def _work(self) -> None:
        get, call, finished = self._waiting.get, self._call, self._finished.put
        while (item := get()) is not None:
            finished(item, Unfinished.NOT_BEGUN if item.lease.is_lost else call(item))
