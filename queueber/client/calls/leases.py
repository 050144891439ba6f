"""Calls about leased items: remove, complete, fail, release, extend.

Each has a batcher, so concurrent calls of many callers are sent as few.
"""

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from queueber.client.arguments.values import (
    CompletedResults,
    Errors,
    Id,
    ItemIds,
    Seconds,
    to_errors,
    to_id,
    to_ids,
    to_ms,
    to_results,
    to_some_ms,
)
from queueber.client.calls.remote_queue import RemoteQueue, answer_each
from queueber.client.transport.batcher import Batcher, Operation
from queueber.limits import DELAY_MS_MAX, LEASE_MS_MAX
from queueber.model import FailOutcome
from queueber.wire.items import read_fail_outcomes

_QUEUE_BACKOFF = -1


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
        self._releases: Batcher[_Held] = Batcher(queue.connection, self._send_releases)
        self._extends: Batcher[_Extend] = Batcher(queue.connection, self._send_extends)

    # --- any thread -------------------------------------------------------------------------------

    def remove(self, ids: ItemIds, lease: Id) -> "Future[list[bool]]":
        return self._put(self._removes, _Held(to_ids("ids", ids), to_id("lease", lease)))

    def remove_whole(self, ids: Sequence[bytes], lease: bytes) -> "Future[list[bool]]":
        """All items that the poll returned: the call names the lease alone."""
        held = _Held(ids, lease, is_whole=True)
        return self._queue.put(self._removes, held, len(ids), group=True)

    def complete(self, ids: ItemIds, results: CompletedResults, lease: Id) -> "Future[list[bool]]":
        held = _Held(to_ids("ids", ids), to_id("lease", lease))
        held.results = to_results(results, len(held.ids))
        return self._put(self._completes, held, size=sum(map(len, held.results)))

    def fail(
        self, ids: ItemIds, error: Errors, lease: Id, delay: Seconds | None
    ) -> "Future[list[FailOutcome]]":
        held = _Held(to_ids("ids", ids), to_id("lease", lease))
        held.errors = to_errors(error, len(held.ids))
        if delay is not None:
            held.delay_ms = to_ms("delay", delay, DELAY_MS_MAX)
        # A batch of several fails repeats the one error of all for each item.
        copies = len(held.ids) if len(held.errors) == 1 else 1
        size = copies * sum(len(each.encode()) for each in held.errors)
        return self._put(self._fails, held, size=size)

    def release(self, ids: ItemIds, lease: Id) -> "Future[list[bool]]":
        return self._put(self._releases, _Held(to_ids("ids", ids), to_id("lease", lease)))

    def extend(self, seconds: Seconds, lease: Id) -> "Future[bool]":
        payload = _Extend(to_id("lease", lease), to_some_ms("seconds", seconds, LEASE_MS_MAX))
        return self._queue.put(self._extends, payload, 1)

    def _put(self, batcher: Batcher[_Held], held: _Held, *, size: int = 0) -> "Future[Any]":
        return self._queue.put(batcher, held, len(held.ids), size=size)

    # --- on the loop ------------------------------------------------------------------------------

    def close(self) -> None:
        """The client closes: send nothing but releases."""
        batchers: list[Batcher[Any]] = [self._removes, self._completes, self._fails, self._extends]
        for batcher in batchers:
            batcher.close()

    @property
    def is_releasing(self) -> bool:
        return self._releases.is_busy

    def end(self) -> None:
        self._releases.close()

    def release_unclaimed(self, ids: Sequence[bytes], lease_id: bytes) -> None:
        """Release items now, instead of when their lease expires."""
        operation = self._queue.operation(_Held(ids, lease_id), len(ids))
        # Nobody waits for the answer; if it fails, the lease expires.
        operation.future.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._releases.put(operation)

    async def _send_removes(self, operations: list[Operation[_Held]]) -> None:
        is_whole = operations[0].payload.is_whole

        def send(queue: Any) -> Any:
            request = queue.removeMany_request()
            body = request.init("req")
            if is_whole:
                body.leases = [operation.payload.lease_id for operation in operations]
                body.counts = [operation.parts for operation in operations]
            else:
                _write_held(body, operations)
            return request.send()

        response = await self._queue.call(send, is_repeatable=False)
        removed = list(response.resp.removed)
        if not is_whole:
            answer_each(operations, removed)
            return
        rest = []
        for operation, is_removed in zip(operations, removed, strict=True):
            if is_removed:
                operation.answer([True] * operation.parts)
            else:
                # The lease lost some of them: ask item by item which.
                operation.payload.is_whole = False
                rest.append(operation)
        if rest:
            await self._send_removes(rest)

    async def _send_completes(self, operations: list[Operation[_Held]]) -> None:
        results = [result for operation in operations for result in operation.payload.results]
        size = sum(operation.size for operation in operations)
        self._queue.check_size("results", len(results), size)

        def send(queue: Any) -> Any:
            request = queue.complete_request()
            body = request.init("req")
            _write_held(body, operations)
            body.results = results
            return request.send()

        response = await self._queue.call(send, is_repeatable=False)
        answer_each(operations, list(response.resp.completed))

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

        def send(queue: Any) -> Any:
            request = queue.fail_request()
            body = request.init("req")
            _write_held(body, operations)
            body.errors = errors
            if any(delay_ms != _QUEUE_BACKOFF for delay_ms in delays_ms):
                body.delaysMs = delays_ms
            return request.send()

        response = await self._queue.call(send, is_repeatable=False)
        answer_each(operations, read_fail_outcomes(response.resp))

    async def _send_releases(self, operations: list[Operation[_Held]]) -> None:
        def send(queue: Any) -> Any:
            request = queue.release_request()
            _write_held(request.init("req"), operations)
            return request.send()

        # Safe to repeat: the second time the lease holds nothing.
        response = await self._queue.call(send, is_repeatable=True)
        answer_each(operations, list(response.resp.released))

    async def _send_extends(self, operations: list[Operation[_Extend]]) -> None:
        def send(queue: Any) -> Any:
            request = queue.extendMany_request()
            body = request.init("req")
            body.leases = [operation.payload.lease_id for operation in operations]
            body.leaseValiditiesMs = [operation.payload.lease_ms for operation in operations]
            return request.send()

        extended = list((await self._queue.call(send, is_repeatable=True)).resp.extended)
        for operation, outcome in zip(operations, extended, strict=True):
            operation.answer(outcome)


def _write_held(body: Any, operations: list[Operation[_Held]]) -> None:
    """Ids and their leases: one lease for each, or one for all."""
    if len(operations) == 1:
        body.ids = operations[0].payload.ids
        body.leases = [operations[0].payload.lease_id]
        return
    body.ids = [item_id for operation in operations for item_id in operation.payload.ids]
    body.leases = [o.payload.lease_id for o in operations for _ in o.payload.ids]
