"""Calls about leased items: remove, complete, fail, release, extend.

Each has a batcher, so concurrent calls of many callers are sent as few.
"""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any

from queueber.client.arguments import values
from queueber.client.arguments.values import CompletedResults, Errors, Id, ItemIds, Seconds
from queueber.client.transport.futures import ignore_outcome
from queueber.client.transport.remote_queue import (
    Batcher,
    Operation,
    RemoteQueue,
    answer_each,
    filled,
)
from queueber.limits import DELAY_MS_MAX, LEASE_MS_MAX
from queueber.model import FailOutcome
from queueber.wire.items import read_fail_outcomes
from queueber.wire.packed import write_packed

_QUEUE_BACKOFF = -1
_NO_FIELDS: Mapping[str, list[Any]] = {}


@dataclass(slots=True)
class _Held:
    """Items and the lease that holds them."""

    ids: Sequence[bytes]
    lease_id: bytes
    results: Sequence[bytes] = ()
    errors: Sequence[str] = ()
    delay_ms: int = _QUEUE_BACKOFF
    is_whole: bool = False
    """Whether these are all items that the poll returned."""


@dataclass(slots=True)
class _Extend:
    lease_id: bytes
    lease_ms: int


class LeaseCalls:
    def __init__(self, queue: RemoteQueue) -> None:
        self._queue = queue
        self._removes: Batcher[_Held] = Batcher(queue.connection, self._send_removes)
        self._completes: Batcher[_Held] = Batcher(queue.connection, self._send_completes)
        self._fails: Batcher[_Held] = Batcher(queue.connection, self._send_fails)
        self._extends: Batcher[_Extend] = Batcher(queue.connection, self._send_extends)
        self.releases: Batcher[_Held] = Batcher(queue.connection, self._send_releases)

    # --- any thread -------------------------------------------------------------------------------

    def remove(self, ids: ItemIds, lease: Id) -> "Future[list[bool]]":
        held = _held(ids, lease)
        return self._removes.submit(held, len(held.ids))

    def remove_whole(self, ids: Sequence[bytes], lease: bytes) -> "Future[list[bool]]":
        """All items that the poll returned: the call names the lease alone."""
        return self._removes.submit(_Held(ids, lease, is_whole=True), len(ids), group=True)

    def complete(self, ids: ItemIds, results: CompletedResults, lease: Id) -> "Future[list[bool]]":
        held = _held(ids, lease)
        held.results = values.to_results(results, len(held.ids))
        return self._completes.submit(held, len(held.ids), size=sum(map(len, held.results)))

    def complete_whole(
        self, ids: Sequence[bytes], results: CompletedResults, lease: bytes
    ) -> "Future[list[bool]]":
        """All items that the poll returned: the call names the lease alone."""
        held = _Held(ids, lease, values.to_results(results, len(ids)), is_whole=True)
        size = sum(map(len, held.results))
        return self._completes.submit(held, len(ids), size=size, group=True)

    def fail(
        self, ids: ItemIds, error: Errors, lease: Id, delay: Seconds | None
    ) -> "Future[list[FailOutcome]]":
        held = _held(ids, lease)
        count = len(held.ids)
        held.errors = values.to_errors(error, count)
        if delay is not None:
            held.delay_ms = values.to_ms("delay", delay, DELAY_MS_MAX)
        # A batch of several fails repeats the one error of all for each item.
        copies = count if len(held.errors) == 1 else 1
        size = copies * sum(len(each.encode()) for each in held.errors)
        return self._fails.submit(held, count, size=size)

    def release(self, ids: ItemIds, lease: Id) -> "Future[list[bool]]":
        held = _held(ids, lease)
        return self.releases.submit(held, len(held.ids))

    def extend(self, seconds: Seconds, lease: Id) -> "Future[bool]":
        payload = _Extend(
            values.to_id("lease", lease), values.to_some_ms("seconds", seconds, LEASE_MS_MAX)
        )
        return self._extends.submit(payload, 1)

    # --- on the loop ------------------------------------------------------------------------------

    def close(self) -> None:
        """The client closes: send nothing but releases."""
        for batcher in (self._removes, self._completes, self._fails):
            batcher.close()
        self._extends.close()

    def release_unclaimed(self, ids: Sequence[bytes], lease_id: bytes) -> None:
        """Release items now, instead of when their lease expires."""
        future = self._queue.connection.new_future()
        ignore_outcome(future)  # If it fails, the lease expires.
        self.releases.put(Operation(_Held(ids, lease_id), future, len(ids)))

    async def _send_removes(self, operations: list[Operation[_Held]]) -> None:
        if operations[0].payload.is_whole:
            send = filled("removeMany", partial(_write_whole, operations))
            response = await self._queue.call(send, is_repeatable=False)
            operations = _answer_whole(operations, response.resp.removed)
        if operations:
            answer_each(operations, list((await self._send("removeMany", operations)).removed))

    async def _send_completes(self, operations: list[Operation[_Held]]) -> None:
        size = sum(operation.size for operation in operations)
        self._queue.check_size("results", sum(each.parts for each in operations), size)
        if operations[0].payload.is_whole and self._queue.connection.server.reads_packed:
            results = [result for each in operations for result in each.payload.results]

            def write(body: Any) -> None:
                _write_whole(operations, body)
                write_packed(body.init("packed"), results)

            response = await self._queue.call(filled("complete", write), is_repeatable=False)
            operations = _answer_whole(operations, response.resp.completed)
        if operations:
            results = [result for each in operations for result in each.payload.results]
            response = await self._send("complete", operations, {"results": results})
            answer_each(operations, list(response.completed))

    async def _send_fails(self, operations: list[Operation[_Held]]) -> None:
        errors = list(operations[0].payload.errors)
        if len(operations) > 1:
            errors = []
            for operation in operations:
                given = operation.payload.errors
                errors += given if len(given) == operation.parts else [*given] * operation.parts
        delays_ms = [o.payload.delay_ms for o in operations for _ in range(o.parts)]
        size = sum(operation.size for operation in operations)
        self._queue.check_size("error", len(delays_ms), size if len(errors) > 1 else 0)
        fields: dict[str, list[Any]] = {"errors": errors}
        if any(delay_ms != _QUEUE_BACKOFF for delay_ms in delays_ms):
            fields["delaysMs"] = delays_ms
        answer_each(operations, read_fail_outcomes(await self._send("fail", operations, fields)))

    async def _send_releases(self, operations: list[Operation[_Held]]) -> None:
        # Safe to repeat: the second time the lease holds nothing.
        response = await self._send("release", operations, is_repeatable=True)
        answer_each(operations, list(response.released))

    async def _send(
        self,
        method: str,
        operations: list[Operation[_Held]],
        fields: Mapping[str, list[Any]] = _NO_FIELDS,
        *,
        is_repeatable: bool = False,
    ) -> Any:
        """One call for all items, with their leases: one for each, or one for all."""

        def write(body: Any) -> None:
            if len(operations) == 1:
                body.ids = list(operations[0].payload.ids)
                body.leases = [operations[0].payload.lease_id]
            else:
                body.ids = [item_id for each in operations for item_id in each.payload.ids]
                body.leases = [o.payload.lease_id for o in operations for _ in o.payload.ids]
            for name, column in fields.items():
                setattr(body, name, column)

        return (await self._queue.call(filled(method, write), is_repeatable=is_repeatable)).resp

    async def _send_extends(self, operations: list[Operation[_Extend]]) -> None:
        def write(body: Any) -> None:
            body.leases = [operation.payload.lease_id for operation in operations]
            body.leaseValiditiesMs = [operation.payload.lease_ms for operation in operations]

        response = await self._queue.call(filled("extendMany", write), is_repeatable=True)
        for operation, outcome in zip(operations, response.resp.extended, strict=True):
            operation.answer(outcome)


def _write_whole(operations: list[Operation[_Held]], body: Any) -> None:
    """Name leases instead of ids: all items that the polls returned."""
    body.leases = [operation.payload.lease_id for operation in operations]
    body.counts = [operation.parts for operation in operations]


def _answer_whole(
    operations: list[Operation[_Held]], were_whole: Iterable[bool]
) -> list[Operation[_Held]]:
    """Answer those whose lease held all items. The other leases have lost some of them: the server
    has to be asked item by item which."""
    rest = []
    for operation, was_whole in zip(operations, were_whole, strict=True):
        if was_whole:
            operation.answer([True] * operation.parts)
        else:
            rest.append(operation)
    return rest


def _held(ids: ItemIds, lease: Id) -> _Held:
    return _Held(values.to_ids("ids", ids), values.to_id("lease", lease))
