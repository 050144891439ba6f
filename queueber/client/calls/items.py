"""Calls of operators: statistics, peek, cancel, purge, redrive, pause."""

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any

from queueber.client.arguments.values import (
    ItemIds,
    Seconds,
    State,
    to_cursor,
    to_ids,
    to_number,
    to_some_ms,
    to_state,
)
from queueber.client.calls.remote_queue import RemoteQueue
from queueber.limits import DELAY_MS_MAX, PEEK_ITEMS_MAX, PURGE_ITEMS_MAX
from queueber.model import ItemInfo, ItemState, Stats
from queueber.wire.queues import read_stats
from queueber.wire.snapshots import read_peeked, wire_state


@dataclass(frozen=True, slots=True)
class PeekPage:
    """Items as they are now. Pass `next` as `after` to get the next page; empty on the last."""

    items: list[ItemInfo]
    next: bytes


class ItemCalls:
    def __init__(self, queue: RemoteQueue) -> None:
        self._queue = queue
        self._connection = queue.connection

    # --- reads ------------------------------------------------------------------------------------

    def stats(self) -> "Future[Stats]":
        return self._connection.submit(self._stats)

    async def _stats(self) -> Stats:
        response = await self._queue.call(lambda queue: queue.stats(), is_repeatable=True)
        return read_stats(response.stats)

    def peek(self, state: State, *, limit: int, after: bytes) -> "Future[PeekPage]":
        asked = {
            "state": wire_state(to_state(state)),
            "limit": to_number("limit", limit, least=1, limit=PEEK_ITEMS_MAX),
            "after": to_cursor("after", after),
        }
        return self._queue.ask(
            lambda queue: queue.peek(asked),
            lambda response: PeekPage(*read_peeked(response.resp)),
            is_repeatable=True,
        )

    # --- changes ----------------------------------------------------------------------------------

    def cancel(self, ids: ItemIds) -> "Future[list[bool]]":
        return self._connection.submit(partial(self._cancel, to_ids("ids", ids)))

    async def _cancel(self, ids: list[bytes]) -> list[bool]:
        cancelled: list[bool] = []
        for part in _parts(ids):
            send = partial(_send_cancel, part)
            response = await self._queue.call(send, is_repeatable=False)
            cancelled += response.cancelled
        return cancelled

    def purge(self, state: State) -> "Future[int]":
        return self._connection.submit(partial(self._purge, to_state(state)))

    async def _purge(self, state: ItemState) -> int:
        stats = await self._stats()
        there = {
            ItemState.READY: stats.ready,
            ItemState.DELAYED: stats.delayed,
            ItemState.LEASED: stats.leased,
            ItemState.DEAD: stats.dead,
        }[state]
        return await self._in_parts(there, partial(_send_purge, state), "purged")

    def redrive(self, ids: ItemIds | None) -> "Future[int]":
        if ids is None:
            return self._connection.submit(self._redrive_all)
        return self._connection.submit(partial(self._redrive, to_ids("ids", ids)))

    async def _redrive(self, ids: list[bytes]) -> int:
        redriven = 0
        for part in _parts(ids):
            response = await self._queue.call(partial(_send_redrive, part, 0), is_repeatable=False)
            redriven += response.redriven
        return redriven

    async def _redrive_all(self) -> int:
        there = (await self._stats()).dead
        return await self._in_parts(there, partial(_send_redrive, []), "redriven")

    async def _in_parts(self, there: int, send: Callable[[int, Any], Any], field: str) -> int:
        """Call by call, until as many items moved as there were; others may add more meanwhile."""
        moved, more = 0, True
        while more and moved < there:
            one_call = partial(send, min(PURGE_ITEMS_MAX, there - moved))
            response = await self._queue.call(one_call, is_repeatable=False)
            of_call = getattr(response, field)
            moved, more = moved + of_call, response.more and of_call > 0
        return moved

    def pause(self, seconds: Seconds | None) -> "Future[None]":
        for_ms = 0 if seconds is None else to_some_ms("seconds", seconds, DELAY_MS_MAX)
        return self._queue.ask(
            lambda queue: queue.pause(for_ms), lambda _: None, is_repeatable=True
        )

    def resume(self) -> "Future[None]":
        return self._queue.ask(lambda queue: queue.resume(), lambda _: None, is_repeatable=True)


def _parts(ids: list[bytes]) -> list[list[bytes]]:
    """Parts that fit into one call."""
    return [ids[at : at + PURGE_ITEMS_MAX] for at in range(0, len(ids), PURGE_ITEMS_MAX)]


def _send_cancel(ids: list[bytes], queue: Any) -> Any:
    return queue.cancel(ids)


def _send_purge(state: ItemState, limit: int, queue: Any) -> Any:
    return queue.purge(wire_state(state), limit)


def _send_redrive(ids: list[bytes], limit: int, queue: Any) -> Any:
    return queue.redrive(ids, limit)
