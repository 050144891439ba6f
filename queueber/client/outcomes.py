"""How the items of a lease end, and how long it lasts: remove, complete, fail, release, extend.

Each verb has a lane, so what many callers ask for at once travels in few calls.
"""

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from queueber.client.arguments import (
    CompletedResults,
    Errors,
    ItemIds,
    to_errors,
    to_id,
    to_ids,
    to_ms,
    to_results,
    to_some_ms,
)
from queueber.client.caller import Caller, answer_each
from queueber.client.lane import Lane, Operation
from queueber.model import FailOutcome
from queueber.wire.states import read_fail_outcomes

_QUEUE_BACKOFF = -1


@dataclass(slots=True)
class _Held:
    """Items, and the lease that holds them."""

    ids: Sequence[bytes]
    lease_id: bytes
    results: Sequence[bytes] = ()
    errors: Sequence[str] = ()
    delay_ms: int = _QUEUE_BACKOFF
    is_whole: bool = False
    """Whether they are all that the lease was given with."""


@dataclass(slots=True)
class _Extend:
    lease_id: bytes
    lease_ms: int


class OutcomeCalls:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._removes: Lane[_Held] = Lane(caller.core, self._send_removes)
        self._completes: Lane[_Held] = Lane(caller.core, self._send_completes)
        self._fails: Lane[_Held] = Lane(caller.core, self._send_fails)
        self._releases: Lane[_Held] = Lane(caller.core, self._send_releases)
        self._extends: Lane[_Extend] = Lane(caller.core, self._send_extends)

    # --- any thread -------------------------------------------------------------------------------

    def remove(self, ids: ItemIds, lease: bytes) -> "Future[list[bool]]":
        return self._put(self._removes, _Held(to_ids("ids", ids), to_id("lease", lease)))

    def remove_whole(self, ids: Sequence[bytes], lease: bytes) -> "Future[list[bool]]":
        """All that a lease was given with: it is enough to name the lease then."""
        held = _Held(ids, lease, is_whole=True)
        return self._caller.put(self._removes, held, len(ids), group=True)

    def complete(
        self, ids: ItemIds, results: CompletedResults, lease: bytes
    ) -> "Future[list[bool]]":
        held = _Held(to_ids("ids", ids), to_id("lease", lease))
        held.results = to_results(results, len(held.ids))
        return self._put(self._completes, held, size=sum(map(len, held.results)))

    def fail(
        self, ids: ItemIds, error: Errors, lease: bytes, delay: float | None
    ) -> "Future[list[FailOutcome]]":
        held = _Held(to_ids("ids", ids), to_id("lease", lease))
        held.errors = to_errors(error, len(held.ids))
        if delay is not None:
            held.delay_ms = to_ms("delay", delay)
        # One error for all of them is sent for each when fails are joined.
        copies = len(held.ids) if len(held.errors) == 1 else 1
        size = copies * sum(len(each.encode()) for each in held.errors)
        return self._put(self._fails, held, size=size)

    def release(self, ids: ItemIds, lease: bytes) -> "Future[list[bool]]":
        return self._put(self._releases, _Held(to_ids("ids", ids), to_id("lease", lease)))

    def extend(self, lease: bytes, seconds: float) -> "Future[bool]":
        payload = _Extend(to_id("lease", lease), to_some_ms("seconds", seconds))
        return self._caller.put(self._extends, payload, 1)

    def _put(self, lane: Lane[_Held], held: _Held, *, size: int = 0) -> "Future[Any]":
        return self._caller.put(lane, held, len(held.ids), size=size)

    # --- the core's loop --------------------------------------------------------------------------

    def close(self) -> None:
        """The client closes: send nothing more but releases."""
        lanes: list[Lane[Any]] = [self._removes, self._completes, self._fails, self._extends]
        for lane in lanes:
            lane.close()

    @property
    def is_releasing(self) -> bool:
        return self._releases.is_busy

    def end(self) -> None:
        self._releases.close()

    def release_unclaimed(self, ids: Sequence[bytes], lease_id: bytes) -> None:
        """Let others have the items now instead of at expiry."""
        operation = self._caller.operation(_Held(ids, lease_id), len(ids))
        # Nobody waits for it, and nobody minds when the lease has to run out instead.
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

        response = await self._caller.call(send, is_repeatable=False)
        removed = list(response.resp.removed)
        if not is_whole:
            answer_each(operations, removed)
            return
        rest = []
        for operation, is_removed in zip(operations, removed, strict=True):
            if is_removed:
                operation.answer([True] * operation.parts)
            else:
                # Some of them are not held any more: only item by item can be said which.
                operation.payload.is_whole = False
                rest.append(operation)
        if rest:
            await self._send_removes(rest)

    async def _send_completes(self, operations: list[Operation[_Held]]) -> None:
        results = [result for operation in operations for result in operation.payload.results]
        size = sum(operation.size for operation in operations)
        self._caller.check_size("results", len(results), size)

        def send(queue: Any) -> Any:
            request = queue.complete_request()
            body = request.init("req")
            _write_held(body, operations)
            body.results = results
            return request.send()

        response = await self._caller.call(send, is_repeatable=False)
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
        self._caller.check_size("error", len(delays_ms), size if len(errors) > 1 else 0)

        def send(queue: Any) -> Any:
            request = queue.fail_request()
            body = request.init("req")
            _write_held(body, operations)
            body.errors = errors
            if any(delay_ms != _QUEUE_BACKOFF for delay_ms in delays_ms):
                body.delaysMs = delays_ms
            return request.send()

        response = await self._caller.call(send, is_repeatable=False)
        answer_each(operations, read_fail_outcomes(response.resp))

    async def _send_releases(self, operations: list[Operation[_Held]]) -> None:
        def send(queue: Any) -> Any:
            request = queue.release_request()
            _write_held(request.init("req"), operations)
            return request.send()

        # Done twice, it does no more: the lease holds nothing any longer.
        response = await self._caller.call(send, is_repeatable=True)
        answer_each(operations, list(response.resp.released))

    async def _send_extends(self, operations: list[Operation[_Extend]]) -> None:
        def send(queue: Any) -> Any:
            request = queue.extendMany_request()
            body = request.init("req")
            body.leases = [operation.payload.lease_id for operation in operations]
            body.leaseValiditiesMs = [operation.payload.lease_ms for operation in operations]
            return request.send()

        extended = list((await self._caller.call(send, is_repeatable=True)).resp.extended)
        for operation, outcome in zip(operations, extended, strict=True):
            operation.answer(outcome)


def _write_held(body: Any, operations: list[Operation[_Held]]) -> None:
    """Ids and their leases: one for each, or a single one for all."""
    if len(operations) == 1:
        body.ids = operations[0].payload.ids
        body.leases = [operations[0].payload.lease_id]
        return
    body.ids = [item_id for operation in operations for item_id in operation.payload.ids]
    body.leases = [o.payload.lease_id for o in operations for _ in o.payload.ids]
