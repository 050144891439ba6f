"""The methods about items: add, poll, extend, and how a lease's items end."""

from functools import partial
from typing import Any

from queueber.errors import InvalidArgument
from queueber.rpc.calls import (
    Answer,
    QueueMethods,
    call,
    many,
    respond,
    respond_first,
    respond_with,
)
from queueber.schema import wire
from queueber.wire.items import read_add, read_results_of, write_added, write_fail_outcomes
from queueber.wire.lists import read_duration_ms
from queueber.wire.polls import write_polled, write_polled_many

_POLL = wire.PollRequest.schema.fields
"""A poll has many fields. Reading one by its name takes five times as long."""


class ItemMethods(QueueMethods):
    @call
    def add_context(self, context: Any) -> Answer:
        request = context.params.req
        write = partial(write_added, id_runs=request.idRuns)
        added = self._service.items.add(self._queue, read_add(request))
        return respond_with(context, "resp", added, write)

    @call
    def poll_context(self, context: Any) -> Answer:
        get = context.params.req._get_by_field
        write = partial(write_polled, columns=get(_POLL["columns"]), packed=get(_POLL["packed"]))
        wait_ms = read_duration_ms(get(_POLL["timeoutSecs"]), get(_POLL["timeoutMs"]))
        if get(_POLL["noWait"]):
            wait_ms = 0
        elif wait_ms == 0:
            wait_ms = self._service.limits.poll_wait_ms_max
        token = get(_POLL["token"])
        memory = self._session.answers.new_answer()
        polled = self._service.polls.poll(
            self._queue,
            get(_POLL["numItems"]),
            lease_ms=read_duration_ms(
                get(_POLL["leaseValiditySecs"]), get(_POLL["leaseValidityMs"])
            ),
            wait_ms=wait_ms,
            connection=self._session if get(_POLL["bound"]) else None,
            name=(self._session, token) if token else None,
            memory=memory,
        )

        async def answer() -> None:
            with memory:
                write(context.results.init("resp"), await polled)

        return answer()

    @call
    async def withdrawPoll_context(self, context: Any) -> None:  # noqa: N802  the schema's name
        self._service.polls.withdraw_poll((self._session, context.params.token))

    @call
    def pollMany_context(self, context: Any) -> Answer:  # noqa: N802  the schema's name
        request = context.params.req
        write = partial(write_polled_many, packed=request.packed)
        memory = self._session.answers.new_answer()
        polled = self._service.polls.poll_many(
            self._queue,
            many("counts", request.counts),
            lease_ms=request.leaseValidityMs,
            connection=self._session if request.bound else None,
            memory=memory,
        )

        async def answer() -> None:
            with memory:
                write(context.results.init("resp"), await polled)

        return answer()

    @call
    def extend_context(self, context: Any) -> Answer:
        request = context.params.req
        lease_ms = read_duration_ms(request.leaseValiditySecs, request.leaseValidityMs)
        extended = self._service.items.extend(self._queue, [request.lease], [lease_ms])
        return respond_first(context, "extended", extended)

    @call
    def extendMany_context(self, context: Any) -> Answer:  # noqa: N802  the schema's name
        request = context.params.req
        extended = self._service.items.extend(
            self._queue,
            many("leases", request.leases),
            many("leaseValiditiesMs", request.leaseValiditiesMs),
        )
        return respond(context, "extended", extended)

    @call
    def remove_context(self, context: Any) -> Answer:
        request = context.params.req
        removed = self._service.items.remove(self._queue, [request.id], [request.lease])
        return respond_first(context, "removed", removed)

    @call
    def removeMany_context(self, context: Any) -> Answer:  # noqa: N802  the schema's name
        request = context.params.req
        if _names_leases(request):
            removed = self._service.items.remove_whole(
                self._queue, many("leases", request.leases), many("counts", request.counts)
            )
        else:
            removed = self._service.items.remove(self._queue, *_held(request))
        return respond(context, "removed", removed)

    @call
    def complete_context(self, context: Any) -> Answer:
        request = context.params.req
        results = read_results_of(request)
        if _names_leases(request):
            completed = self._service.items.complete_whole(
                self._queue,
                many("leases", request.leases),
                many("counts", request.counts),
                results,
            )
        else:
            completed = self._service.items.complete(self._queue, *_held(request), results)
        return respond(context, "completed", completed)

    @call
    def fail_context(self, context: Any) -> Answer:
        request = context.params.req
        outcomes = self._service.items.fail(
            self._queue,
            *_held(request),
            many("errors", request.errors),
            many("delaysMs", request.delaysMs),
        )
        return respond_with(context, "resp", outcomes, write_fail_outcomes)

    @call
    def release_context(self, context: Any) -> Answer:
        request = context.params.req
        released = self._service.items.release(self._queue, *_held(request))
        return respond(context, "released", released)


def _names_leases(request: Any) -> bool:
    """Whether whole leases are named, each with its count, instead of ids."""
    if not len(request.counts):
        return False
    if len(request.ids):
        raise InvalidArgument("counts: ids were given, too; give the one or the other")
    return True


def _held(request: Any) -> tuple[list[Any], list[Any]]:
    """Ids and leases, as every outcome of work names them."""
    return many("ids", request.ids), many("leases", request.leases)
