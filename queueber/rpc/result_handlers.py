"""The methods about receipts of batches and the log of results."""

from collections.abc import Awaitable
from typing import Any

from queueber.rpc.calls import Answer, QueueMethods, answer_with, call, respond_with
from queueber.wire.lists import read_columns
from queueber.wire.results import write_batches, write_log_stats, write_receipt, write_results


class ResultMethods(QueueMethods):
    @call
    def receipt_context(self, context: Any) -> Answer:
        receipt = self._service.results.receipt(self._queue, context.params.batch)
        return respond_with(context, "receipt", receipt, write_receipt)

    @call
    def waitBatch_context(self, context: Any) -> Answer:  # noqa: N802  the schema's name
        params = context.params
        receipt = self._service.results.wait_for_batch(self._queue, params.batch, params.timeoutMs)
        return respond_with(context, "receipt", receipt, write_receipt)

    @call
    async def listBatches_context(self, context: Any) -> None:  # noqa: N802  the schema's name
        params = context.params
        self._session.answers.check()
        batches, more = self._service.results.list_batches(self._queue, params.before, params.limit)
        write_batches(context.results, batches, more)
        self._count(context)

    @call
    def forgetBatch_context(self, context: Any) -> Answer:  # noqa: N802  the schema's name
        forgotten = self._service.results.forget_batch(self._queue, context.params.batch)
        return answer_with(context, "forgotten", forgotten)

    @call
    def forgetBatches_context(self, context: Any) -> Answer:  # noqa: N802  the schema's name
        asked = context.params
        done = self._service.results.forget_batches(
            self._queue, asked.unchangedForMs, asked.after, asked.limit
        )
        return _answer_with_slice(context, done)

    @call
    async def readResults_context(self, context: Any) -> None:  # noqa: N802  the schema's name
        request = context.params.req
        what = {
            "offset": request.offset,
            "limit": request.limit,
            "before": request.before,
            "batch": request.batch,
            "without": read_columns(request.without),
        }
        snapshot, reader, wait_ms = request.snapshot, request.reader, request.timeoutMs
        # A call that waits must not keep a long message in memory.
        context.release_params()
        with self._session.answers.new_answer() as memory:
            memory.check()
            if snapshot:
                results = self._service.snapshots.read_snapshot(self._queue, snapshot, **what)
            else:
                results = await self._service.results.read_results(
                    self._queue, reader=reader, wait_ms=wait_ms, memory=memory, **what
                )
            write_results(context.results.init("resp"), results, with_offsets=bool(what["batch"]))
            if snapshot:
                self._count(context)

    @call
    def ackResults_context(self, context: Any) -> Answer:  # noqa: N802  the schema's name
        params = context.params
        return self._service.results.ack_results(self._queue, params.reader, params.offset)

    @call
    def dropReader_context(self, context: Any) -> Answer:  # noqa: N802  the schema's name
        dropped = self._service.results.drop_reader(self._queue, context.params.reader)
        return answer_with(context, "dropped", dropped)

    @call
    async def listReaders_context(self, context: Any) -> None:  # noqa: N802  the schema's name
        self._session.answers.check()
        write_log_stats(
            context.results.init("log"), self._service.results.results_stats(self._queue)
        )
        self._count(context)


async def _answer_with_slice(context: Any, done: Awaitable[tuple[int, int]]) -> None:
    context.results.forgotten, context.results.next = await done
