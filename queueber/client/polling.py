"""Polls: joined where they can be, alone where they have to wait.

A poll that was sent is always answered to us, even when its caller has gone. It is not cancelled
but withdrawn: the server answers at once, and if the answer has items all the same, for they were
on their way already, they are released.
"""

import asyncio
import contextlib
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any

import capnp

from queueber.client.arguments import to_count, to_lease_ms, to_ms
from queueber.client.caller import Caller
from queueber.client.lane import Lane, Operation
from queueber.client.outcomes import OutcomeCalls
from queueber.errors import Unavailable
from queueber.limits import ITEM_WIRE_BYTES, MESSAGE_OVERHEAD_BYTES, SECOND_MS
from queueber.model import Polled
from queueber.wire.items import read_polled, read_polled_many

_LANES_MAX = 100


@dataclass(frozen=True, slots=True)
class _Terms:
    """What polls that are joined have in common."""

    lease_ms: int
    bound: bool


@dataclass(slots=True)
class _Poll:
    count: int
    wait_ms: int
    terms: _Terms


class _Lone:
    """A poll that travels alone. It may wait, and can be withdrawn then."""

    task: "asyncio.Task[None]"

    def __init__(self, operation: Operation[_Poll], token: int) -> None:
        self.operation = operation
        self.token = token
        self.is_wanted = True
        self.sent_to: Any = None
        """The capability, while it is under way."""


class PollCalls:
    def __init__(self, caller: Caller, outcomes: OutcomeCalls) -> None:
        self._caller = caller
        self._core = caller.core
        self._outcomes = outcomes
        self._lanes: dict[_Terms, Lane[_Poll]] = {}
        self._lone: set[_Lone] = set()
        self._is_closed = False

    # --- any thread -------------------------------------------------------------------------------

    def poll(
        self, count: int, *, lease: float | None, wait: float, bound: bool
    ) -> "Future[Polled]":
        terms = _Terms(to_lease_ms(lease), bool(bound))
        payload = _Poll(to_count(count), to_ms("wait", wait), terms)
        operation = self._caller.operation(payload, payload.count)
        self._core.post(partial(self._put, operation))
        return operation.future

    def give_back(self, polled: "Future[Polled]") -> None:
        """A poll whose caller has gone: if it was answered all the same, nobody keeps its items."""
        if not polled.cancel() and not polled.cancelled() and polled.exception() is None:
            with contextlib.suppress(Unavailable):  # the client is closed
                self._core.post(partial(self._give_back, polled.result()))

    # --- the core's loop --------------------------------------------------------------------------

    def _put(self, operation: Operation[_Poll]) -> None:
        terms = operation.payload.terms
        lane = self._lanes.get(terms)
        if lane is None:
            if len(self._lanes) > _LANES_MAX:
                self._lanes = {key: each for key, each in self._lanes.items() if each.is_busy}
            lane = self._lanes[terms] = Lane(
                self._core,
                partial(self._send, terms),
                parts_max=lambda: self._core.server.poll_items_max,
            )
        lane.put(operation)

    async def _send(self, terms: _Terms, operations: list[Operation[_Poll]]) -> None:
        """Serve several with what is ready; who got nothing and may wait, waits alone."""
        alone = operations
        if len(operations) > 1 and not self._is_closed:
            counts = [operation.payload.count for operation in operations]
            answers = await self._poll_many(counts, terms)
            alone = []
            # An answer that is full says nothing of the polls behind: there may be more items.
            server = self._core.server
            room = server.answer_bytes_max - server.item_bytes_max
            is_full = sum(map(_size, answers)) + MESSAGE_OVERHEAD_BYTES > room
            for operation, polled in zip(operations, answers, strict=True):
                if polled.ids or (operation.payload.wait_ms == 0 and not is_full):
                    self._answer(operation, polled)
                else:
                    alone.append(operation)
        for operation in alone:
            if self._is_closed:
                operation.fail(_closed())
            else:
                self._start_alone(operation)

    def _start_alone(self, operation: Operation[_Poll]) -> None:
        """Not awaited: a poll that waits must not keep others from leaving."""
        lone = _Lone(operation, next(self._core.tokens))
        self._lone.add(lone)
        lone.task = self._core.start(
            self._poll_alone(lone),
            operation.future,
            self._give_back,
            withdraw=partial(self._withdraw, lone),
        )
        lone.task.add_done_callback(lambda _: self._lone.discard(lone))

    async def _poll_many(self, counts: list[int], terms: _Terms) -> list[Polled]:
        def send(queue: Any) -> Any:
            request = queue.pollMany_request()
            body = request.init("req")
            body.counts = counts
            body.leaseValidityMs = terms.lease_ms
            body.bound = terms.bound
            return request.send()

        response = await self._caller.call(
            send, is_repeatable=True, is_wanted=lambda: not self._is_closed
        )
        return read_polled_many(response.resp)

    async def _poll_alone(self, lone: _Lone) -> Polled:
        payload = lone.operation.payload
        wait_seconds = payload.wait_ms / SECOND_MS
        wait_until = self._core.time() + wait_seconds

        async def send(queue: Any) -> Any:
            request = queue.poll_request()
            body = request.init("req")
            body.numItems = payload.count
            body.leaseValidityMs = payload.terms.lease_ms
            body.bound = payload.terms.bound
            body.columns = True
            # Sent again after a loss, it waits for what is left of its time.
            wait_ms = int((wait_until - self._core.time()) * SECOND_MS)
            body.timeoutMs = max(wait_ms, 0)
            body.noWait = wait_ms <= 0
            body.token = lone.token
            lone.sent_to = queue
            try:
                return await request.send()
            finally:
                lone.sent_to = None

        response = await self._caller.call(
            send, is_repeatable=True, wait_seconds=wait_seconds, is_wanted=lambda: lone.is_wanted
        )
        return read_polled(response.resp)

    def _withdraw(self, lone: _Lone) -> None:
        """Nobody waits for it any more."""
        if not lone.is_wanted:
            return
        lone.is_wanted = False
        if lone.sent_to is None:
            lone.task.cancel()
        else:
            self._core.spawn(_tell_withdrawn(lone, lone.sent_to))

    def close(self) -> None:
        """The client closes: withdraw what is under way, and send nothing more."""
        self._is_closed = True
        for lane in self._lanes.values():
            lane.close()
        for lone in list(self._lone):
            lone.operation.fail(_closed())
            self._withdraw(lone)

    @property
    def is_under_way(self) -> bool:
        """Whether an answer may still bring items."""
        return any(lone.sent_to is not None for lone in self._lone) or any(
            lane.is_busy for lane in self._lanes.values()
        )

    def _answer(self, operation: Operation[_Poll], polled: Polled) -> None:
        if self._is_closed:
            operation.fail(_closed())
        if not operation.answer(polled):
            self._give_back(polled)

    def _give_back(self, polled: Polled) -> None:
        """The caller has gone: let others have the items."""
        if polled.ids:
            self._outcomes.release_unclaimed(polled.ids, polled.lease_id)


async def _tell_withdrawn(lone: _Lone, queue: Any) -> None:
    try:
        # By the capability that the poll was sent to, and so behind it.
        await queue.withdrawPoll(lone.token)
    except capnp.KjException:
        # The server is too old to know this, or has gone: nothing is left but to hang up.
        lone.task.cancel()


def _closed() -> Unavailable:
    return Unavailable("the client was closed while the call was under way")


def _size(polled: Polled) -> int:
    """What an answer fills of a message, as the server counts it."""
    size = sum(map(len, polled.contents)) + len(polled.ids) * ITEM_WIRE_BYTES
    size += sum(len(key.encode()) for key in polled.details.keys)
    for attributes in polled.details.attributes:
        size += sum(len(n.encode()) + len(value.encode()) for n, value in attributes.items())
    return size
