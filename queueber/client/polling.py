"""Polls: joined where they can be, alone where they have to wait."""

import contextlib
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any

from queueber.client.arguments import to_count, to_lease_ms, to_ms
from queueber.client.caller import Caller
from queueber.client.lane import Lane, Operation
from queueber.client.outcomes import OutcomeCalls
from queueber.errors import Unavailable
from queueber.limits import ITEM_WIRE_BYTES, MESSAGE_OVERHEAD_BYTES, SECOND_MS
from queueber.model import Polled
from queueber.schema.codec_items import read_polled, read_polled_many

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


class PollCalls:
    def __init__(self, caller: Caller, outcomes: OutcomeCalls) -> None:
        self._caller = caller
        self._core = caller.core
        self._outcomes = outcomes
        self.lanes: dict[_Terms, Lane[_Poll]] = {}

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
        lane = self.lanes.get(terms)
        if lane is None:
            if len(self.lanes) > _LANES_MAX:
                self.lanes = {key: each for key, each in self.lanes.items() if each.is_busy}
            lane = self.lanes[terms] = Lane(
                self._core,
                partial(self._send, terms),
                parts_max=lambda: self._core.server.poll_items_max,
            )
        lane.put(operation)

    async def _send(self, terms: _Terms, operations: list[Operation[_Poll]]) -> None:
        """Serve several with what is ready; who got nothing and may wait, waits alone."""
        alone = operations
        if len(operations) > 1:
            counts = [operation.payload.count for operation in operations]
            answers = await self._poll_many(counts, terms)
            alone = []
            # An answer that is full says nothing of the polls behind: there may be more items.
            room = self._core.server.message_bytes_max - self._core.server.item_bytes_max
            is_full = sum(map(_size, answers)) + 2 * MESSAGE_OVERHEAD_BYTES > room
            for operation, polled in zip(operations, answers, strict=True):
                if polled.ids or (operation.payload.wait_ms == 0 and not is_full):
                    self._answer(operation, polled)
                else:
                    alone.append(operation)
        for operation in alone:
            # Not awaited here: a poll that waits must not keep others from leaving.
            self._core.start(self._poll_alone(operation.payload), operation.future, self._give_back)

    async def _poll_many(self, counts: list[int], terms: _Terms) -> list[Polled]:
        def send(queue: Any) -> Any:
            request = queue.pollMany_request()
            body = request.init("req")
            body.counts = counts
            body.leaseValidityMs = terms.lease_ms
            body.bound = terms.bound
            return request.send()

        response = await self._caller.call(send, is_repeatable=True)
        return read_polled_many(response.resp)

    async def _poll_alone(self, payload: _Poll) -> Polled:
        wait_seconds = payload.wait_ms / SECOND_MS
        wait_until = self._core.time() + wait_seconds

        def send(queue: Any) -> Any:
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
            return request.send()

        response = await self._caller.call(send, is_repeatable=True, wait_seconds=wait_seconds)
        return read_polled(response.resp)

    def _answer(self, operation: Operation[_Poll], polled: Polled) -> None:
        if not operation.answer(polled):
            self._give_back(polled)

    def _give_back(self, polled: Polled) -> None:
        """The caller has gone: let others have the items."""
        if polled.ids:
            self._outcomes.release_unclaimed(polled.ids, polled.lease_id)


def _size(polled: Polled) -> int:
    """What an answer fills of a message, as the server counts it."""
    size = sum(map(len, polled.contents)) + len(polled.ids) * ITEM_WIRE_BYTES
    size += sum(len(key.encode()) for key in polled.details.keys)
    for attributes in polled.details.attributes:
        size += sum(len(n.encode()) + len(value.encode()) for n, value in attributes.items())
    return size
