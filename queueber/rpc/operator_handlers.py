"""The methods for operators: look into a queue, take items out of it, pause it."""

from collections.abc import Awaitable
from typing import Any

from queueber.rpc.calls import Answer, QueueMethods, answer_with, call, many
from queueber.wire.found import write_finding
from queueber.wire.queues import write_leases, write_stats
from queueber.wire.snapshots import read_state, write_peeked


class OperatorMethods(QueueMethods):
    @call
    async def stats_context(self, context: Any) -> None:
        write_stats(context.results.init("stats"), self._service.queues.stats(self._queue))

    @call
    async def peek_context(self, context: Any) -> None:
        request = context.params.req
        state = read_state(request.state)
        self._session.answers.check()
        items, next_after = self._service.items.peek(
            self._queue, state, request.after, request.limit, request.where
        )
        write_peeked(context.results.init("resp"), items, next_after)
        self._count(context)

    @call
    async def listLeases_context(self, context: Any) -> None:  # noqa: N802  the schema's name
        params = context.params
        self._session.answers.check()
        leases, more = self._service.lease_holders.list_leases(
            self._queue, params.after, params.limit
        )
        write_leases(context.results, leases, more)
        self._count(context)

    @call
    async def findItem_context(self, context: Any) -> None:  # noqa: N802  the schema's name
        params = context.params
        self._session.answers.check()
        finding = self._service.find.find_item(self._queue, params.id, params.key, params.after)
        write_finding(context.results, finding)
        self._count(context)

    @call
    def cancel_context(self, context: Any) -> Answer:
        cancelled = self._service.items.cancel(self._queue, many("ids", context.params.ids))
        return answer_with(context, "cancelled", cancelled)

    @call
    def cancelKey_context(self, context: Any) -> Answer:  # noqa: N802  the schema's name
        cancelled = self._service.items.cancel_key(self._queue, context.params.key)
        return answer_with(context, "cancelled", cancelled)

    @call
    def cancelBatch_context(self, context: Any) -> Answer:  # noqa: N802  the schema's name
        params = context.params
        state = read_state(params.state)
        cancelled = self._service.items.cancel_batch(
            self._queue, params.batch, state, params.after, params.limit
        )
        return _respond_next(context, cancelled)

    @call
    def reschedule_context(self, context: Any) -> Answer:
        ids = many("ids", context.params.ids)
        rescheduled = self._service.items.reschedule(self._queue, ids, context.params.delayMs)
        return answer_with(context, "rescheduled", rescheduled)

    @call
    def purge_context(self, context: Any) -> Answer:
        params = context.params
        purged = self._service.items.purge(self._queue, read_state(params.state), params.limit)
        return _respond_slice(context, "purged", purged)

    @call
    def redrive_context(self, context: Any) -> Answer:
        params = context.params
        redriven = self._service.items.redrive(self._queue, many("ids", params.ids), params.limit)
        return _respond_slice(context, "redriven", redriven)

    @call
    def pause_context(self, context: Any) -> Answer:
        return self._service.queues.pause(self._queue, context.params.forMs)

    @call
    def resume_context(self, context: Any) -> Answer:
        return self._service.queues.resume(self._queue)


async def _respond_next(context: Any, cancelled: Awaitable[tuple[int, bytes]]) -> None:
    context.results.cancelled, context.results.next = await cancelled


async def _respond_slice(context: Any, field: str, moved: Awaitable[tuple[int, bool]]) -> None:
    count, more = await moved
    setattr(context.results, field, count)
    context.results.more = more
