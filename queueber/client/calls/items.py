"""Calls of operators: statistics, peek, leases, cancel, reschedule, purge, redrive, pause."""

from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from operator import methodcaller
from typing import Any

from queueber.client.arguments import values
from queueber.client.arguments.moments import to_delay
from queueber.client.arguments.values import ItemIds, Seconds, State
from queueber.client.calls.features import check_feature
from queueber.client.transport.remote_queue import RemoteQueue
from queueber.errors import InvalidArgument
from queueber.limits import (
    BATCH_NAME_BYTES_MAX,
    DELAY_MS_MAX,
    FILTER_CHARS_MAX,
    KEY_BYTES_MAX,
    LEASES_LIST_MAX,
    PEEK_ITEMS_MAX,
    PURGE_ITEMS_MAX,
)
from queueber.model import Feature, ItemInfo, ItemState, LeaseInfo, Stats
from queueber.wire.queues import read_leases, read_stats
from queueber.wire.snapshots import read_peeked, wire_state

_FILTER_BYTES_MAX = 4 * FILTER_CHARS_MAX
"""Of its characters in UTF-8; the server says more of a filter that is wrong."""
_IN_ORDER = (ItemState.DELAYED, ItemState.READY, ItemState.LEASED, ItemState.DEAD)
"""In the order in which items go through them, so that those that move on are met later."""
_BATCH_PASSES_MAX = 5
"""How often all states are looked through for items of a batch that workers move meanwhile."""


@dataclass(frozen=True, slots=True)
class PeekPage:
    """Items as they are now. Pass `next` as `after` to get the next page; empty on the last."""

    items: list[ItemInfo]
    next: bytes


@dataclass(frozen=True, slots=True)
class LeasePage:
    """Leases as they are now. Pass `next` as `after` to get the next page; empty on the last."""

    leases: list[LeaseInfo]
    next: bytes


class ItemCalls:
    def __init__(self, queue: RemoteQueue) -> None:
        self._queue = queue
        self._submit = queue.connection.submit

    # --- reads ------------------------------------------------------------------------------------

    def stats(self) -> "Future[Stats]":
        return self._submit(self._stats)

    async def _stats(self) -> Stats:
        return read_stats((await self._queue.call(methodcaller("stats"), is_repeatable=True)).stats)

    def peek(self, state: State, *, limit: int, after: bytes, where: str) -> "Future[PeekPage]":
        asked = {
            "state": wire_state(values.to_state(state)),
            "limit": values.to_number("limit", limit, least=1, limit=PEEK_ITEMS_MAX),
            "after": values.to_cursor("after", after),
            "where": where and values.to_text("where", where, _FILTER_BYTES_MAX),
        }
        connection = self._queue.connection

        def send(queue: Any) -> Any:
            if where:
                check_feature(connection.server, Feature.WHERE, "where")
            return queue.peek(asked)

        return self._queue.ask(send, lambda response: PeekPage(*read_peeked(response.resp)))

    def list_leases(self, limit: int, after: values.Id) -> "Future[LeasePage]":
        send = methodcaller(
            "listLeases",
            values.to_id("after", after) if after else b"",
            values.to_number("limit", limit, least=1, limit=LEASES_LIST_MAX),
        )
        return self._queue.ask(send, _read_leases)

    # --- changes ----------------------------------------------------------------------------------

    def cancel(self, ids: ItemIds) -> "Future[list[bool]]":
        return self._submit(partial(self._cancel, values.to_ids("ids", ids)))

    async def _cancel(self, ids: list[bytes]) -> list[bool]:
        cancelled: list[bool] = []
        for part in _parts(ids):
            response = await self._queue.call(methodcaller("cancel", part), is_repeatable=False)
            cancelled += response.cancelled
        return cancelled

    def cancel_key(self, key: str) -> "Future[bool]":
        text = values.to_text("key", key, KEY_BYTES_MAX, is_needed=True)
        return self._submit(partial(self._cancel_key, text))

    async def _cancel_key(self, key: str) -> bool:
        send = methodcaller("cancelKey", key)
        cancelled: bool = (await self._queue.call(send, is_repeatable=False)).cancelled
        return cancelled

    def cancel_batch(self, batch: str) -> "Future[int]":
        text = values.to_text("batch", batch, BATCH_NAME_BYTES_MAX, is_needed=True)
        return self._submit(partial(self._cancel_batch, text))

    async def _cancel_batch(self, batch: str) -> int:
        cancelled = 0
        for _ in range(_BATCH_PASSES_MAX):
            of_pass = 0
            for state in _IN_ORDER:
                of_pass += await self._cancel_of_state(batch, state)
            cancelled += of_pass
            # What moved on to a state that was looked at before has its turn again.
            if not of_pass or not (await self._live(batch)):
                break
        return cancelled

    async def _cancel_of_state(self, batch: str, state: ItemState) -> int:
        cancelled: int = 0
        after = b""
        while True:
            send = methodcaller("cancelBatch", batch, wire_state(state), after, 0)
            response = await self._queue.call(send, is_repeatable=False)
            cancelled += response.cancelled
            after = response.next
            if not after:
                return cancelled

    async def _live(self, batch: str) -> int:
        answer = await self._queue.call(methodcaller("receipt", batch), is_repeatable=True)
        live: int = answer.receipt.live
        return live

    def reschedule(
        self, ids: ItemIds, at: datetime | None, delay: Seconds | None
    ) -> "Future[list[bool]]":
        if (at is None) == (delay is None):
            raise InvalidArgument("at: give either at or delay, and not both")
        chosen = delay if at is None else to_delay(at)
        delay_ms = values.to_ms("delay", chosen, DELAY_MS_MAX)
        return self._submit(partial(self._reschedule, values.to_ids("ids", ids), delay_ms))

    async def _reschedule(self, ids: list[bytes], delay_ms: int) -> list[bool]:
        rescheduled: list[bool] = []
        for part in _parts(ids):
            send = methodcaller("reschedule", part, delay_ms)
            rescheduled += (await self._queue.call(send, is_repeatable=False)).rescheduled
        return rescheduled

    def purge(self, state: State) -> "Future[int]":
        return self._submit(partial(self._purge, values.to_state(state)))

    async def _purge(self, state: ItemState) -> int:
        stats = await self._stats()
        there = {
            ItemState.READY: stats.ready,
            ItemState.DELAYED: stats.delayed,
            ItemState.LEASED: stats.leased,
            ItemState.DEAD: stats.dead,
        }[state]
        return await self._in_parts(there, "purge", wire_state(state), "purged")

    def redrive(self, ids: ItemIds | None) -> "Future[int]":
        if ids is None:
            return self._submit(self._redrive_all)
        return self._submit(partial(self._redrive, values.to_ids("ids", ids)))

    async def _redrive(self, ids: list[bytes]) -> int:
        redriven = 0
        for part in _parts(ids):
            send = methodcaller("redrive", part, 0)
            response = await self._queue.call(send, is_repeatable=False)
            redriven += response.redriven
        return redriven

    async def _redrive_all(self) -> int:
        return await self._in_parts((await self._stats()).dead, "redrive", [], "redriven")

    async def _in_parts(self, there: int, method: str, chosen: object, field: str) -> int:
        """Call by call, until as many items moved as there were; others may add more meanwhile."""
        moved, more = 0, True
        while more and moved < there:
            send = methodcaller(method, chosen, min(PURGE_ITEMS_MAX, there - moved))
            response = await self._queue.call(send, is_repeatable=False)
            of_call = getattr(response, field)
            moved, more = moved + of_call, response.more and of_call > 0
        return moved

    def pause(self, seconds: Seconds | None) -> "Future[None]":
        for_ms = 0 if seconds is None else values.to_some_ms("seconds", seconds, DELAY_MS_MAX)
        return self._queue.ask(methodcaller("pause", for_ms), lambda _: None)

    def resume(self) -> "Future[None]":
        return self._queue.ask(methodcaller("resume"), lambda _: None)


def _read_leases(response: Any) -> LeasePage:
    leases, more = read_leases(response)
    return LeasePage(leases, leases[-1].lease_id if more else b"")


def _parts(ids: list[bytes]) -> list[list[bytes]]:
    """Parts that fit into one call."""
    return [ids[at : at + PURGE_ITEMS_MAX] for at in range(0, len(ids), PURGE_ITEMS_MAX)]
