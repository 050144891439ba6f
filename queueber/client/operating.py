"""Calls of those who operate a queue: look into it, take items out, pause it."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any

from queueber.client.arguments import (
    ItemIds,
    State,
    to_cursor,
    to_ids,
    to_number,
    to_some_ms,
    to_state,
)
from queueber.client.caller import Caller
from queueber.limits import PEEK_ITEMS_MAX, PURGE_ITEMS_MAX
from queueber.model import ItemInfo, ItemState, Stats
from queueber.wire.queues import read_stats
from queueber.wire.states import read_peeked, wire_state


@dataclass(frozen=True, slots=True)
class PeekPage:
    """Items as they stand. `next` is what `after` is to be for the next page; empty: no more."""

    items: list[ItemInfo]
    next: bytes


class OperateCalls:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._core = caller.core

    # --- questions --------------------------------------------------------------------------------

    def stats(self) -> "Future[Stats]":
        return self._core.submit(self._stats)

    async def _stats(self) -> Stats:
        response = await self._caller.call(lambda queue: queue.stats(), is_repeatable=True)
        return read_stats(response.stats)

    def peek(self, state: State, *, limit: int, after: bytes) -> "Future[PeekPage]":
        to_number("limit", limit, least=1, limit=PEEK_ITEMS_MAX)
        to_cursor("after", after)
        return self._core.submit(partial(self._peek, to_state(state), limit, after))

    async def _peek(self, state: ItemState, limit: int, after: bytes) -> PeekPage:
        def send(queue: Any) -> Any:
            request = queue.peek_request()
            body = request.init("req")
            body.state = wire_state(state)
            body.limit = limit
            body.after = after
            return request.send()

        response = await self._caller.call(send, is_repeatable=True)
        return PeekPage(*read_peeked(response.resp))

    # --- interventions ----------------------------------------------------------------------------

    def cancel(self, ids: ItemIds) -> "Future[list[bool]]":
        return self._core.submit(partial(self._cancel, to_ids("ids", ids)))

    async def _cancel(self, ids: list[bytes]) -> list[bool]:
        cancelled: list[bool] = []
        for part in _parts(ids):
            send = partial(_send_cancel, part)
            response = await self._caller.call(send, is_repeatable=False)
            cancelled += response.cancelled
        return cancelled

    def purge(self, state: State) -> "Future[int]":
        return self._core.submit(partial(self._purge, to_state(state)))

    async def _purge(self, state: ItemState) -> int:
        stats = await self._stats()
        there = {
            ItemState.READY: stats.ready,
            ItemState.DELAYED: stats.delayed,
            ItemState.LEASED: stats.leased,
            ItemState.DEAD: stats.dead,
        }[state]
        return await self._in_slices(there, partial(_send_purge, state), "purged")

    def redrive(self, ids: ItemIds | None) -> "Future[int]":
        if ids is None:
            return self._core.submit(self._redrive_all)
        return self._core.submit(partial(self._redrive, to_ids("ids", ids)))

    async def _redrive(self, ids: list[bytes]) -> int:
        redriven = 0
        for part in _parts(ids):
            response = await self._caller.call(partial(_send_redrive, part, 0), is_repeatable=False)
            redriven += response.redriven
        return redriven

    async def _redrive_all(self) -> int:
        there = (await self._stats()).dead
        return await self._in_slices(there, partial(_send_redrive, []), "redriven")

    async def _in_slices(self, there: int, send: Callable[[int, Any], Any], field: str) -> int:
        """Slice after slice, until as many have moved as were there; others may bring more."""
        moved, more = 0, True
        while more and moved < there:
            one = partial(send, min(PURGE_ITEMS_MAX, there - moved))
            response = await self._caller.call(one, is_repeatable=False)
            of_slice = getattr(response, field)
            moved, more = moved + of_slice, response.more and of_slice > 0
        return moved

    def pause(self, seconds: float | None) -> "Future[None]":
        for_ms = 0 if seconds is None else to_some_ms("seconds", seconds)
        return self._core.submit(partial(self._pause, for_ms))

    async def _pause(self, for_ms: int) -> None:
        await self._caller.call(lambda queue: queue.pause(for_ms), is_repeatable=True)

    def resume(self) -> "Future[None]":
        return self._core.submit(self._resume)

    async def _resume(self) -> None:
        await self._caller.call(lambda queue: queue.resume(), is_repeatable=True)


def _parts(ids: list[bytes]) -> list[list[bytes]]:
    """As many at once as a slice of purge has."""
    return [ids[at : at + PURGE_ITEMS_MAX] for at in range(0, len(ids), PURGE_ITEMS_MAX)]


def _send_cancel(ids: list[bytes], queue: Any) -> Any:
    return queue.cancel(ids)


def _send_purge(state: ItemState, limit: int, queue: Any) -> Any:
    return queue.purge(wire_state(state), limit)


def _send_redrive(ids: list[bytes], limit: int, queue: Any) -> Any:
    return queue.redrive(ids, limit)
