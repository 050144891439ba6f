"""Calls about finished items: receipts of batches, and the results that are kept."""

from collections.abc import Coroutine
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from operator import methodcaller
from typing import Any, TypedDict, Unpack

from queueber.client.arguments import values
from queueber.client.arguments.values import Columns, Seconds
from queueber.client.transport.remote_queue import RemoteQueue
from queueber.errors import InvalidArgument
from queueber.limits import (
    BATCH_KEEP_MS_MAX,
    BATCH_NUMBER_MAX,
    BATCHES_LIST_MAX,
    READ_ITEMS_MAX,
    SECOND_MS,
)
from queueber.model import BatchInfo, LogStats, Receipt, ResultColumns
from queueber.wire.results import read_batches, read_log_stats, read_receipt, read_results

_WAIT_ROUND_MS = 20 * SECOND_MS
"""How long one call waits. Longer waits are several calls, so a lost connection is noticed."""


class ReadOptions(TypedDict, total=False):
    """Which results to read; see `Queue.read_results`."""

    limit: int
    batch: str | None
    before: int | None
    without: Columns


class WaitingReadOptions(ReadOptions, total=False):
    """Which results to read, and how long to wait for them."""

    reader: str | None
    wait: Seconds


def to_read(
    offset: int,
    *,
    limit: int = 1000,
    batch: str | None = None,
    before: int | None = None,
    without: Columns = (),
) -> dict[str, Any]:
    """The fields of a request. Empty and 0 mean no condition."""
    return {
        "offset": values.to_number("offset", offset),
        "limit": values.to_number("limit", limit, least=1, limit=READ_ITEMS_MAX),
        "before": 0 if before is None else values.to_number("before", before, least=1),
        "batch": "" if batch is None else values.to_batch(batch),
        "without": values.to_columns(without),
    }


@dataclass(frozen=True, slots=True)
class BatchPage:
    """Batches as they are now. Pass `next` as `before` to get the next page; 0 on the last."""

    batches: list[BatchInfo]
    next: int


class ResultCalls:
    """All but `drop_reader` and `forget_batch` are safe to repeat."""

    def __init__(self, queue: RemoteQueue) -> None:
        self._queue = queue

    def receipt(self, batch: str) -> "Future[Receipt]":
        return self._queue.ask(
            methodcaller("receipt", values.to_batch(batch)),
            lambda response: read_receipt(response.receipt),
        )

    def list_batches(self, limit: int, before: int) -> "Future[BatchPage]":
        send = methodcaller(
            "listBatches",
            values.to_number("before", before, limit=BATCH_NUMBER_MAX),
            values.to_number("limit", limit, least=1, limit=BATCHES_LIST_MAX),
        )
        return self._queue.ask(send, _read_batches)

    def forget_batch(self, batch: str) -> "Future[bool]":
        # Not safe to repeat: the second time the answer would be False.
        return self._queue.ask(
            methodcaller("forgetBatch", values.to_batch(batch)),
            lambda response: bool(response.forgotten),
            is_repeatable=False,
        )

    def forget_batches(self, unchanged_for: Seconds) -> "Future[int]":
        unchanged_ms = values.to_ms("unchanged_for", unchanged_for, BATCH_KEEP_MS_MAX)
        return self._queue.connection.submit(partial(self._forget_batches, unchanged_ms))

    async def _forget_batches(self, unchanged_ms: int) -> int:
        """Slice by slice from the oldest on. One that was forgotten is not counted twice, but one
        whose answer was lost is not counted."""
        forgotten = after = 0
        while True:
            send = methodcaller("forgetBatches", unchanged_ms, after, 0)
            response = await self._call(send, 0)
            forgotten, after = forgotten + int(response.forgotten), int(response.next)
            if not after:
                return forgotten

    def wait_for_batch(self, batch: str, timeout: Seconds | None) -> "Future[Receipt]":
        timeout_ms = None if timeout is None else values.to_ms("timeout", timeout)
        return self._queue.connection.submit(
            partial(self._wait_for_batch, values.to_batch(batch), timeout_ms)
        )

    async def _wait_for_batch(self, batch: str, timeout_ms: int | None) -> Receipt:
        time = self._queue.connection.loop.time
        give_up_at = None if timeout_ms is None else time() + timeout_ms / SECOND_MS
        while True:
            round_ms = _WAIT_ROUND_MS
            if give_up_at is not None:
                round_ms = max(0, min(round_ms, int((give_up_at - time()) * SECOND_MS)))
            response = await self._call(methodcaller("waitBatch", batch, round_ms), round_ms)
            receipt = read_receipt(response.receipt)
            if receipt.complete or (give_up_at is not None and time() + 0.001 > give_up_at):
                return receipt

    def read(
        self,
        offset: int,
        *,
        reader: str | None = None,
        wait: Seconds = 0,
        **options: Unpack[ReadOptions],
    ) -> "Future[ResultColumns]":
        if reader is not None and offset:
            raise InvalidArgument("offset: a named reader goes on where it is; give one of the two")
        name = "" if reader is None else values.to_reader(reader)
        asked = to_read(offset, **options) | {"reader": name}
        return self._queue.connection.submit(partial(self._read, asked, values.to_ms("wait", wait)))

    async def _read(self, asked: dict[str, Any], wait_ms: int) -> ResultColumns:
        """Read until there are results, or the wait is over and the end was reached."""
        time = self._queue.connection.loop.time
        give_up_at = time() + wait_ms / SECOND_MS
        missed = 0
        while True:
            round_ms = max(0, min(_WAIT_ROUND_MS, int((give_up_at - time()) * SECOND_MS)))
            send = methodcaller("readResults", asked | {"timeoutMs": round_ms})
            read = read_results((await self._call(send, round_ms)).resp)
            if asked["reader"] and not asked["batch"]:
                # Every call asks where the reader is: somebody else may have acknowledged.
                if read.ids or time() + 0.001 > give_up_at:
                    return read
                continue
            has_moved = bool(asked["reader"]) or read.next_offset > asked["offset"]
            missed += read.missed
            asked |= {"offset": read.next_offset, "reader": ""}
            is_over = asked["before"] and asked["offset"] >= asked["before"]
            if read.ids or is_over or (not has_moved and time() + 0.001 > give_up_at):
                return replace(read, missed=missed)

    def ack_results(self, reader: str, offset: int) -> "Future[None]":
        send = methodcaller(
            "ackResults", values.to_reader(reader), values.to_number("offset", offset)
        )
        return self._queue.ask(send, lambda _: None)

    def drop_reader(self, reader: str) -> "Future[bool]":
        # Not safe to repeat: the second time the answer would be False.
        return self._queue.ask(
            methodcaller("dropReader", values.to_reader(reader)),
            lambda response: bool(response.dropped),
            is_repeatable=False,
        )

    def stats(self) -> "Future[LogStats]":
        return self._queue.ask(
            methodcaller("listReaders"), lambda response: read_log_stats(response.log)
        )

    def _call(self, send: Any, wait_ms: int) -> Coroutine[Any, Any, Any]:
        return self._queue.call(send, is_repeatable=True, wait_seconds=wait_ms / SECOND_MS)


def _read_batches(response: Any) -> BatchPage:
    batches, more = read_batches(response)
    return BatchPage(batches, batches[-1].number if more else 0)
