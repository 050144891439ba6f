"""The calls of one queue, joined in lanes. They run on the core's loop; faces may be elsewhere.

Here the seconds that users speak become the milliseconds of the wire.
"""

import contextlib
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Any, TypeVar

from queueber.client.arguments import (
    Contents,
    Delay,
    to_contents,
    to_count,
    to_delays_ms,
    to_id,
    to_ids,
    to_lease_ms,
    to_ms,
    to_name,
)
from queueber.client.core import Core
from queueber.client.lane import Lane, Operation
from queueber.errors import ResourceExhausted, Unavailable
from queueber.limits import ITEM_WIRE_BYTES, MESSAGE_OVERHEAD_BYTES, SECOND_MS
from queueber.model import Polled, Stats
from queueber.schema.codec import read_polled, read_polled_many, read_stats

P = TypeVar("P")

_GIVE_BACK_MS = 1


@dataclass(slots=True)
class _Add:
    contents: Sequence[bytes]
    delays_ms: Sequence[int]


@dataclass(slots=True)
class _Remove:
    ids: Sequence[bytes]
    lease_id: bytes


@dataclass(slots=True)
class _Extend:
    lease_id: bytes
    lease_ms: int


@dataclass(slots=True)
class _Poll:
    count: int
    lease_ms: int
    wait_ms: int


class QueueCalls:
    """One queue over one core. All clients of a core share it, so that their calls are joined."""

    def __init__(self, core: Core, name: str) -> None:
        self._core = core
        self.name = name
        self._adds = Lane(core, self._send_adds)
        self._removes = Lane(core, self._send_removes)
        self._extends = Lane(core, self._send_extends)
        self._polls: dict[int, Lane[_Poll]] = {}
        core.on_close.append(self._close)

    # --- any thread -------------------------------------------------------------------------------

    def add(self, contents: Contents, delay: Delay) -> "Future[list[bytes]]":
        listed = to_contents(contents)
        payload = _Add(listed, to_delays_ms(delay, len(listed)))
        operation = self._operation(payload, len(listed), sum(map(len, listed)))
        self._core.post(partial(self._adds.put, operation))
        return operation.future

    def remove(self, ids: bytes | Iterable[bytes], lease: bytes) -> "Future[list[bool]]":
        payload = _Remove(to_ids("ids", ids), to_id("lease", lease))
        operation = self._operation(payload, len(payload.ids))
        self._core.post(partial(self._removes.put, operation))
        return operation.future

    def extend(self, lease: bytes, seconds: float) -> "Future[bool]":
        operation = self._operation(_Extend(to_id("lease", lease), to_lease_ms(seconds)), 1)
        self._core.post(partial(self._extends.put, operation))
        return operation.future

    def poll(self, count: int, lease: float, wait: float) -> "Future[Polled]":
        payload = _Poll(to_count(count), to_lease_ms(lease), to_ms("wait", wait))
        operation = self._operation(payload, payload.count)
        self._core.post(partial(self._put_poll, operation))
        return operation.future

    def give_back(self, polled: "Future[Polled]") -> None:
        """A poll whose caller has gone: if it was answered all the same, nobody keeps its items."""
        if not polled.cancel() and not polled.cancelled() and polled.exception() is None:
            with contextlib.suppress(Unavailable):  # the client is closed
                self._core.post(partial(self._give_back, polled.result()))

    def _operation(self, payload: P, parts: int, size: int = 0) -> Operation[P]:
        return Operation(payload, self._core.new_future(), parts, size)

    def stats(self) -> "Future[Stats]":
        return self._core.submit(self._stats)

    # --- the core's loop --------------------------------------------------------------------------

    def _close(self) -> None:
        lanes: list[Lane[Any]] = [self._adds, self._removes, self._extends]
        for lane in [*lanes, *self._polls.values()]:
            lane.close()

    async def _stats(self) -> Stats:
        response = await self._call(lambda queue: queue.stats(), is_repeatable=True)
        return read_stats(response.stats)

    async def _call(self, send: Any, *, is_repeatable: bool, wait_seconds: float = 0.0) -> Any:
        return await self._core.call(
            lambda link: send(link.queue(self.name)),
            is_repeatable=is_repeatable,
            queue=self.name,
            wait_seconds=wait_seconds,
        )

    async def _send_adds(self, operations: list[Operation[_Add]]) -> None:
        contents = [each for operation in operations for each in operation.payload.contents]
        size = sum(operation.size for operation in operations)
        self._check_size(size + len(contents) * ITEM_WIRE_BYTES + MESSAGE_OVERHEAD_BYTES)
        delays_ms: list[int] = []
        if any(operation.payload.delays_ms for operation in operations):
            for operation in operations:
                delays_ms += operation.payload.delays_ms or [0] * operation.parts

        def send(queue: Any) -> Any:
            request = queue.add_request()
            body = request.init("req")
            body.contents = contents
            if delays_ms:
                body.delaysMs = delays_ms
            return request.send()

        ids = list((await self._call(send, is_repeatable=False)).resp.ids)
        _answer_each(operations, ids)

    def _check_size(self, size: int) -> None:
        limit = self._core.server.message_bytes_max
        if size > limit:
            raise ResourceExhausted(
                f"contents: the call has {size} bytes; the limit is {limit}, send several calls"
            )

    async def _send_removes(self, operations: list[Operation[_Remove]]) -> None:
        ids = [item_id for operation in operations for item_id in operation.payload.ids]
        leases = [o.payload.lease_id for o in operations for _ in o.payload.ids]

        def send(queue: Any) -> Any:
            request = queue.removeMany_request()
            body = request.init("req")
            body.ids = ids
            body.leases = leases if len(operations) > 1 else leases[:1]
            return request.send()

        removed = list((await self._call(send, is_repeatable=False)).resp.removed)
        _answer_each(operations, removed)

    async def _send_extends(self, operations: list[Operation[_Extend]]) -> None:
        def send(queue: Any) -> Any:
            request = queue.extendMany_request()
            body = request.init("req")
            body.leases = [operation.payload.lease_id for operation in operations]
            body.leaseValiditiesMs = [operation.payload.lease_ms for operation in operations]
            return request.send()

        extended = list((await self._call(send, is_repeatable=True)).resp.extended)
        for operation, outcome in zip(operations, extended, strict=True):
            operation.answer(outcome)

    # --- polls ------------------------------------------------------------------------------------

    def _put_poll(self, operation: Operation[_Poll]) -> None:
        # Polls that are joined share the length of their leases.
        lease_ms = operation.payload.lease_ms
        lane = self._polls.get(lease_ms)
        if lane is None:
            if len(self._polls) > 100:
                self._polls = {ms: each for ms, each in self._polls.items() if each.is_busy}
            lane = self._polls[lease_ms] = Lane(
                self._core,
                partial(self._send_polls, lease_ms),
                parts_max=lambda: self._core.server.poll_items_max,
            )
        lane.put(operation)

    async def _send_polls(self, lease_ms: int, operations: list[Operation[_Poll]]) -> None:
        """Serve several with what is ready; who got nothing and may wait, waits alone."""
        alone = operations
        if len(operations) > 1:
            counts = [operation.payload.count for operation in operations]
            answers = await self._poll_many(counts, lease_ms)
            alone = []
            # An answer that is full says nothing of the polls behind: there may be more items.
            room = self._core.server.message_bytes_max - self._core.server.item_bytes_max
            filled = sum(len(each) + ITEM_WIRE_BYTES for a in answers for each in a.contents)
            is_full = filled + 2 * MESSAGE_OVERHEAD_BYTES > room
            for operation, polled in zip(operations, answers, strict=True):
                if polled.ids or (operation.payload.wait_ms == 0 and not is_full):
                    self._answer_poll(operation, polled)
                else:
                    alone.append(operation)
        for operation in alone:
            # Not awaited here: a poll that waits must not keep others from leaving.
            self._core.start(self._poll_alone(operation.payload), operation.future, self._give_back)

    async def _poll_many(self, counts: list[int], lease_ms: int) -> list[Polled]:
        def send(queue: Any) -> Any:
            request = queue.pollMany_request()
            body = request.init("req")
            body.counts = counts
            body.leaseValidityMs = lease_ms
            return request.send()

        response = await self._call(send, is_repeatable=True)
        return read_polled_many(response.resp)

    async def _poll_alone(self, payload: _Poll) -> Polled:
        wait_seconds = payload.wait_ms / SECOND_MS
        wait_until = self._core.time() + wait_seconds

        def send(queue: Any) -> Any:
            request = queue.poll_request()
            body = request.init("req")
            body.numItems = payload.count
            body.leaseValidityMs = payload.lease_ms
            body.columns = True
            # Sent again after a loss, it waits for what is left of its time.
            wait_ms = int((wait_until - self._core.time()) * SECOND_MS)
            body.timeoutMs = max(wait_ms, 0)
            body.noWait = wait_ms <= 0
            return request.send()

        response = await self._call(send, is_repeatable=True, wait_seconds=wait_seconds)
        return read_polled(response.resp)

    def _answer_poll(self, operation: Operation[_Poll], polled: Polled) -> None:
        if not operation.answer(polled):
            self._give_back(polled)

    def _give_back(self, polled: Polled) -> None:
        """The caller has gone: let others have the items now instead of at expiry."""
        if polled.ids:
            operation = self._operation(_Extend(polled.lease_id, _GIVE_BACK_MS), 1)
            # Nobody waits for it, and nobody minds when the lease has to run out instead.
            operation.future.add_done_callback(lambda done: done.cancelled() or done.exception())
            self._extends.put(operation)


def _answer_each(operations: Sequence[Operation[Any]], results: list[Any]) -> None:
    """Give each operation as many of the results as it has parts."""
    start = 0
    for operation in operations:
        operation.answer(results[start : start + operation.parts])
        start += operation.parts


class CallsByQueue:
    """The calls of each queue, the same for all who ask for it, so that they are joined."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._calls: dict[str, QueueCalls] = {}
        self._lock = Lock()

    def __getitem__(self, name: str) -> QueueCalls:
        to_name(name)
        with self._lock:
            if name not in self._calls:
                self._calls[name] = QueueCalls(self._core, name)
            return self._calls[name]
