"""Results: receipts of batches, the log of a queue's results, and its readers."""

from collections.abc import Awaitable, Coroutine
from typing import Any, TypeVar

from queueber.engine.log import reader_offset
from queueber.engine.queue.queue_state import QueueTx, live_view
from queueber.engine.queue.results import ack_results, drop_reader, results_of, results_stats
from queueber.limits import BATCHES_LIST_MAX, FORGET_BATCHES_MAX, READ_ITEMS_MAX
from queueber.model import ALL_COLUMNS, BatchInfo, Column, LogStats, Receipt
from queueber.model import Results as FoundResults
from queueber.service.session import QueueHandle
from queueber.service.shell import Shell
from queueber.service.unread_answers import AnswerMemory
from queueber.service.validate.items import check_batch, check_reader
from queueber.service.waiting import Look, keep_looking

T = TypeVar("T")


def _forget(tx: QueueTx, batch: str) -> bool:
    return tx.queue.batches.forget(tx, batch)


def _forget_some(tx: QueueTx, unchanged_for_ms: int, after: int, limit: int) -> tuple[int, int]:
    return tx.queue.batches.forget_some(tx, unchanged_for_ms, after, limit)


class Results:
    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    # --- batches ----------------------------------------------------------------------------------

    def receipt(self, queue: QueueHandle, batch: str) -> Awaitable[Receipt]:
        queue.check_alive()
        check_batch(batch)
        return self._shell.durable(queue.state.batches.receipt(batch))

    def list_batches(
        self, queue: QueueHandle, before: int, limit: int
    ) -> tuple[list[BatchInfo], bool]:
        """Batches before number `before` (0: all), newest first, and whether there are more."""
        queue.check_alive()
        end = queue.state.counters.last_batch + 1
        limit = min(limit, BATCHES_LIST_MAX) or BATCHES_LIST_MAX
        return queue.state.batches.page(min(before, end) or end, limit)

    def wait_for_batch(self, queue: QueueHandle, batch: str, wait_ms: int) -> Awaitable[Receipt]:
        """The receipt once it is complete, or as it is when the time is up."""
        check_batch(batch)

        def look() -> tuple[Receipt, bool]:
            queue.check_alive()
            found = queue.state.batches.receipt(batch)
            return found, found.complete

        return self._wait_for(queue, batch, look, wait_ms)

    def forget_batch(self, queue: QueueHandle, batch: str) -> Awaitable[bool]:
        """Whether there was such a batch; it is forgotten now."""
        check_batch(batch)
        return self._shell.write(queue, _forget, batch, event="batch_forgotten")

    def forget_batches(
        self, queue: QueueHandle, unchanged_for_ms: int, after: int, limit: int
    ) -> Awaitable[tuple[int, int]]:
        """A slice of the batches that ended so long ago: how many, and after which one to go on."""
        limit = min(limit, FORGET_BATCHES_MAX) or FORGET_BATCHES_MAX
        asked = (unchanged_for_ms, after, limit)
        return self._shell.write(queue, _forget_some, *asked, event="batches_forgotten")

    # --- the log ----------------------------------------------------------------------------------

    def read_results(
        self,
        queue: QueueHandle,
        *,
        reader: str,
        offset: int,
        limit: int,
        wait_ms: int,
        before: int = 0,
        batch: str = "",
        without: frozenset[Column] = ALL_COLUMNS,
        memory: AnswerMemory | None = None,
    ) -> Awaitable[FoundResults]:
        """Results from where the reader has acknowledged, or without a reader from `offset`.

        It waits for results that are not there yet. When all that are there are of another batch,
        it answers at once how far it came.
        """
        queue.check_alive()
        log = queue.state.results
        if reader:
            check_reader(reader)
            offset = reader_offset(log, reader)
        if batch:
            check_batch(batch)
        limit = min(limit, READ_ITEMS_MAX) or READ_ITEMS_MAX
        bytes_max = self._shell.limits.answer_bytes_max
        at, missed = offset, 0

        def look() -> tuple[FoundResults, bool]:
            nonlocal at, missed
            queue.check_alive()
            if memory is not None:
                memory.check()
            view = live_view(self._shell.engine.store, queue.state)
            found = results_of(
                view, at, limit, bytes_max, before=before, batch=batch, without=without
            )
            # What was passed over need not be looked at again when the next result comes.
            at, missed = found.next_offset, missed + found.missed
            if memory is not None:
                memory.take(sum(len(each.result) for each in found.results))
            is_at_end = at == log.head.next_offset and not (before and at >= before)
            answer = FoundResults(found.results, at, missed)
            return answer, bool(found.results) or not is_at_end

        return self._wait_for(queue, None, look, wait_ms)

    def ack_results(self, queue: QueueHandle, reader: str, offset: int) -> Awaitable[None]:
        check_reader(reader)
        return self._shell.write(queue, ack_results, reader, offset, event="acknowledged")

    def drop_reader(self, queue: QueueHandle, reader: str) -> Awaitable[bool]:
        check_reader(reader)
        return self._shell.write(queue, drop_reader, reader, event="reader_dropped")

    def results_stats(self, queue: QueueHandle) -> LogStats:
        queue.check_alive()
        return results_stats(queue.state)

    # --- waiting ----------------------------------------------------------------------------------

    def _wait_for(
        self, queue: QueueHandle, batch: str | None, look: Look[T], wait_ms: int
    ) -> Coroutine[Any, Any, T]:
        """Look until the answer is what the caller waits for, or the time is up.

        Look again whenever the batch has ended, or without one when results have come.
        """
        key = (queue.state.queue_id, batch)
        return self._keep_looking(queue, key, look, look(), wait_ms)

    async def _keep_looking(
        self, queue: QueueHandle, key: object, look: Look[T], first: tuple[T, bool], wait_ms: int
    ) -> T:
        shell = self._shell
        answer = await keep_looking(shell, queue.session, key, look, first, wait_ms=wait_ms)
        return await shell.durable(answer)
