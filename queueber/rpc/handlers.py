"""One method for each method of the schema: read, call the service, answer.

pycapnp calls `<name>_context`. What a method does before it returns its coroutine happens at once,
in the order of arrival; the coroutine ends when the answer may be sent.
"""

from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from typing import Any

from queueber.engine.state import QueueState
from queueber.errors import InvariantViolation
from queueber.limits import MANY_MAX
from queueber.model import ServerInfo
from queueber.rpc.faults import early_fault, late_fault
from queueber.schema import wire
from queueber.schema.codec import (
    read_add,
    read_duration_ms,
    read_list,
    read_settings,
    write_polled,
    write_polled_many,
    write_server_info,
    write_stats,
)
from queueber.service.service import Service

Answer = Coroutine[Any, Any, None]


class _Calls:
    """How every method is run: through the gate, its errors turned into faults."""

    def __init__(self, service: Service, on_crash: Callable[[BaseException], None]) -> None:
        self._service = service
        self._on_crash = on_crash

    def begin(self, method: Callable[[Any, Any], Answer], context: Any) -> Answer:
        try:
            self._service.gate.check()
            answer = method(self, context)
        except Exception as error:  # noqa: BLE001  every error becomes a fault with a code
            self._crash_if_ours(error)
            raise early_fault(error) from None
        return self._finish(answer)

    async def _finish(self, answer: Answer) -> None:
        gate = self._service.gate
        gate.enter()
        try:
            await answer
        except Exception as error:  # noqa: BLE001  every error becomes a fault with a code
            self._crash_if_ours(error)
            raise late_fault(error) from None
        finally:
            gate.leave()

    def _crash_if_ours(self, error: Exception) -> None:
        if isinstance(error, InvariantViolation):
            self._on_crash(error)


def _call(method: Callable[[Any, Any], Answer]) -> Callable[[Any, Any], Answer]:
    """A method of the schema: what it does at once, then the coroutine that answers."""

    @wraps(method)
    def begin(self: _Calls, context: Any) -> Answer:
        return self.begin(method, context)

    return begin


async def _respond(context: Any, field: str, value: Awaitable[object]) -> None:
    setattr(context.results.init("resp"), field, await value)


async def _respond_first(context: Any, field: str, values: Awaitable[list[bool]]) -> None:
    setattr(context.results.init("resp"), field, (await values)[0])


def _many(field: str, values: Any) -> list[Any]:
    return read_list(field, values, MANY_MAX)


class _QueueMethods(_Calls):
    def __init__(
        self, service: Service, queue: QueueState, on_crash: Callable[[BaseException], None]
    ) -> None:
        super().__init__(service, on_crash)
        self._queue = queue

    @_call
    def add_context(self, context: Any) -> Answer:
        added = self._service.add(self._queue, *read_add(context.params.req))
        return _respond(context, "ids", added)

    @_call
    def remove_context(self, context: Any) -> Answer:
        request = context.params.req
        removed = self._service.remove(self._queue, [request.id], [request.lease])
        return _respond_first(context, "removed", removed)

    @_call
    def poll_context(self, context: Any) -> Answer:
        request = context.params.req
        columns = request.columns
        wait_ms = read_duration_ms(request.timeoutSecs, request.timeoutMs)
        if request.noWait:
            wait_ms = 0
        elif wait_ms == 0:
            wait_ms = self._service.limits.poll_wait_ms_max
        polled = self._service.poll(
            self._queue,
            request.numItems,
            lease_ms=read_duration_ms(request.leaseValiditySecs, request.leaseValidityMs),
            wait_ms=wait_ms,
        )

        async def answer() -> None:
            write_polled(context.results.init("resp"), await polled, columns=columns)

        return answer()

    @_call
    def extend_context(self, context: Any) -> Answer:
        request = context.params.req
        lease_ms = read_duration_ms(request.leaseValiditySecs, request.leaseValidityMs)
        extended = self._service.extend(self._queue, [request.lease], [lease_ms])
        return _respond_first(context, "extended", extended)

    @_call
    def removeMany_context(self, context: Any) -> Answer:  # noqa: N802  the schema's name
        request = context.params.req
        removed = self._service.remove(
            self._queue,
            read_list("ids", request.ids, MANY_MAX),
            read_list("leases", request.leases, MANY_MAX),
        )
        return _respond(context, "removed", removed)

    @_call
    def extendMany_context(self, context: Any) -> Answer:  # noqa: N802  the schema's name
        request = context.params.req
        extended = self._service.extend(
            self._queue,
            read_list("leases", request.leases, MANY_MAX),
            read_list("leaseValiditiesMs", request.leaseValiditiesMs, MANY_MAX),
        )
        return _respond(context, "extended", extended)

    @_call
    def pollMany_context(self, context: Any) -> Answer:  # noqa: N802  the schema's name
        request = context.params.req
        polled = self._service.poll_many(
            self._queue,
            _many("counts", request.counts),
            lease_ms=request.leaseValidityMs,
        )

        async def answer() -> None:
            write_polled_many(context.results.init("resp"), await polled)

        return answer()

    @_call
    async def stats_context(self, context: Any) -> None:
        write_stats(context.results.init("stats"), self._service.stats(self._queue))


class QueueHandler(_QueueMethods, wire.Queue.Server):  # type: ignore[misc]  # capnp is untyped
    """The capability of one queue."""


class ServiceHandler(_QueueMethods, wire.Service.Server):  # type: ignore[misc]  # capnp is untyped
    """The bootstrap object. Used as a queue, it is the default one."""

    def __init__(
        self, service: Service, on_crash: Callable[[BaseException], None], info: ServerInfo
    ) -> None:
        super().__init__(service, service.default_queue, on_crash)
        self._info = info

    @_call
    def queue_context(self, context: Any) -> Answer:
        params = context.params
        found = self._service.queue(params.name, must_exist=params.mustExist)

        async def answer() -> None:
            context.results.queue = QueueHandler(self._service, await found, self._on_crash)

        return answer()

    @_call
    def createQueue_context(self, context: Any) -> Answer:  # noqa: N802  the schema's name
        params = context.params
        created = self._service.create_queue(params.name, read_settings(params.settings))

        async def answer() -> None:
            context.results.created = await created

        return answer()

    @_call
    def configureQueue_context(self, context: Any) -> Answer:  # noqa: N802  the schema's name
        params = context.params
        configured = self._service.configure_queue(params.name, read_settings(params.settings))

        async def answer() -> None:
            await configured

        return answer()

    @_call
    def deleteQueue_context(self, context: Any) -> Answer:  # noqa: N802  the schema's name
        deleted = self._service.delete_queue(context.params.name)

        async def answer() -> None:
            context.results.deleted = await deleted

        return answer()

    @_call
    async def listQueues_context(self, context: Any) -> None:  # noqa: N802  the schema's name
        params = context.params
        queues, more = self._service.list_queues(params.after, params.limit)
        results = context.results
        results.more = more
        listed = results.init("queues", len(queues))
        for at, stats in enumerate(queues):
            write_stats(listed[at], stats)

    @_call
    async def describe_context(self, context: Any) -> None:
        write_server_info(context.results.init("server"), self._info)
