"""Plain functions, in threads."""

import asyncio
import threading
from collections.abc import Callable

from queueber.worker.handlers.runner import OnFinished, Runner
from queueber.worker.handlers.time_limit import Deadline, TimeLimit, stack_of_thread
from queueber.worker.handlers.work_item import Failed, HeldLease, Unfinished, WorkItem

Call = Callable[[WorkItem], bytes | Failed]


class ThreadRunner(Runner):
    """The threads take items from one queue, so the loop is not involved between two items."""

    can_cancel = False

    def __init__(
        self, call: Call, concurrency: int, on_finished: OnFinished, limit: TimeLimit | None = None
    ) -> None:
        super().__init__(asyncio.get_running_loop().call_soon_threadsafe, on_finished, limit)
        self._call = call if limit is None else self._limited(call, limit)
        self._items: dict[int, WorkItem] = {}
        """With each thread the item that it has; kept only for a time limit."""
        # Daemons: a handler that never ends must not keep the program from ending.
        self._threads = [
            threading.Thread(target=self._work, name=f"queueber-handler-{number}", daemon=True)
            for number in range(concurrency)
        ]
        for thread in self._threads:
            thread.start()

    def cancel(self, lease: HeldLease | None = None) -> None:
        """Nothing can end a thread; the handler may look at `item.is_lost`."""

    async def close(self) -> None:
        for _ in self._threads:
            self._waiting.put(None)

    def _work(self) -> None:
        get, call, finish = self._waiting.get, self._call, self._finish
        while (item := get()) is not None:
            finish(item, Unfinished.NOT_BEGUN if item.lease.is_lost else call(item))

    def _limited(self, call: Call, limit: TimeLimit) -> Call:
        is_for = limit.is_for

        def limited(item: WorkItem) -> bytes | Failed:
            if not is_for(item):
                return call(item)
            self._items[threading.get_ident()] = item
            limit.begin(item)
            outcome = call(item)
            self._has_ended(limit, item)
            return outcome

        return limited

    def _stop_late(self, item: WorkItem, deadline: Deadline) -> None:
        assert self._limit is not None
        thread_ids = [at for at, each in self._items.copy().items() if each is item]
        # Read first: if the item can be taken out then, the thread was in the handler.
        stack = stack_of_thread(thread_ids[0] if thread_ids else 0)
        self._give_up(self._limit, item, deadline, stack)
