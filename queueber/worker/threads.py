"""Plain functions, each in a thread of its own."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue

from queueber.worker.holding import HeldLease, WorkItem
from queueber.worker.outcomes import Failed, Unfinished
from queueber.worker.runner import Finished, Returns, Runner


class ThreadRunner(Runner):
    """Threads take items from one queue themselves: between two items none asks the loop."""

    can_cancel = False

    def __init__(
        self,
        call: Callable[[WorkItem], bytes | Failed],
        concurrency: int,
        on_finished: Callable[[Sequence[Finished]], None],
    ) -> None:
        self._call = call
        self._inbox: SimpleQueue[WorkItem | None] = SimpleQueue()
        self._returns = Returns(asyncio.get_running_loop(), on_finished)
        # Daemons: a handler that never ends must not keep the program from ending.
        self._threads = [
            threading.Thread(target=self._work, name=f"queueber-handler-{number}", daemon=True)
            for number in range(concurrency)
        ]
        for thread in self._threads:
            thread.start()

    def put(self, items: Sequence[WorkItem]) -> None:
        for item in items:
            self._inbox.put(item)

    def withdraw(self) -> list[WorkItem]:
        taken: list[WorkItem] = []
        try:
            while (item := self._inbox.get_nowait()) is not None:
                taken.append(item)
        except Empty:
            pass
        return taken

    def cancel(self, lease: HeldLease | None = None) -> None:
        """Threads see `item.is_lost`, if they look."""

    @property
    def waiting(self) -> int:
        return self._inbox.qsize()

    async def close(self) -> None:
        for _ in self._threads:
            self._inbox.put(None)

    def _work(self) -> None:
        get, call, returns = self._inbox.get, self._call, self._returns.put
        while (item := get()) is not None:
            returns(item, Unfinished.NOT_BEGUN if item.lease.is_lost else call(item))
