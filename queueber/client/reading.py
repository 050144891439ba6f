"""What became of items: receipts of batches, and the log of results."""

from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypedDict, Unpack

from queueber.client.arguments import (
    Columns,
    to_batch,
    to_columns,
    to_ms,
    to_number,
    to_reader,
)
from queueber.client.caller import Caller
from queueber.errors import InvalidArgument
from queueber.limits import READ_ITEMS_MAX, SECOND_MS
from queueber.model import Column, LogStats, Receipt, ResultColumns, Results
from queueber.wire.lists import write_columns
from queueber.wire.results import read_log_stats, read_receipt, read_results, results_of

_WAIT_ROUND_MS = 20 * SECOND_MS
"""How long one call waits: a longer wait is several, so that none outlives its connection long."""


class ReadArguments(TypedDict):
    """Which results a user asks for; see `Queue.read_results`."""

    limit: int
    batch: str | None
    before: int | None
    without: Columns


@dataclass(frozen=True, slots=True)
class Asked:
    """Which results are asked for. Empty and 0 are no condition."""

    offset: int
    limit: int
    before: int
    batch: str
    without: frozenset[Column]


def to_asked(
    offset: int, *, limit: int, batch: str | None, before: int | None, without: Columns
) -> Asked:
    return Asked(
        to_number("offset", offset),
        to_number("limit", limit, least=1, limit=READ_ITEMS_MAX),
        0 if before is None else to_number("before", before, least=1),
        "" if batch is None else to_batch(batch),
        to_columns(without),
    )


def send_read(
    asked: Asked, reader: str, timeout_ms: int, queue: Any, *, snapshot: bytes = b""
) -> Any:
    request = queue.readResults_request()
    body = request.init("req")
    body.reader = reader
    body.offset = asked.offset
    body.limit = asked.limit
    body.timeoutMs = timeout_ms
    body.before = asked.before
    body.batch = asked.batch
    body.snapshot = snapshot
    if asked.without:
        write_columns(body.init("without"), asked.without)
    return request.send()


class ReadCalls:
    """All of them may be repeated: they ask, or say how far somebody has read."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def receipt(self, batch: str) -> "Future[Receipt]":
        return self._caller.core.submit(partial(self._receipt, to_batch(batch)))

    async def _receipt(self, batch: str) -> Receipt:
        response = await self._call(lambda queue: queue.receipt(batch))
        return read_receipt(response.receipt)

    def wait_batch(self, batch: str, timeout: float | None) -> "Future[Receipt]":
        timeout_ms = None if timeout is None else to_ms("timeout", timeout)
        return self._caller.core.submit(partial(self._wait_batch, to_batch(batch), timeout_ms))

    async def _wait_batch(self, batch: str, timeout_ms: int | None) -> Receipt:
        time = self._caller.core.time
        give_up_at = None if timeout_ms is None else time() + timeout_ms / SECOND_MS
        while True:
            round_ms = _WAIT_ROUND_MS
            if give_up_at is not None:
                round_ms = max(0, min(round_ms, int((give_up_at - time()) * SECOND_MS)))
            response = await self._call(partial(_send_wait_batch, batch, round_ms), round_ms)
            receipt = read_receipt(response.receipt)
            if receipt.complete or (give_up_at is not None and time() + 0.001 > give_up_at):
                return receipt

    def read_results(
        self, offset: int, reader: str | None, wait: float, **asked: Unpack[ReadArguments]
    ) -> "Future[Results]":
        read = self._reading(offset, reader, wait, asked)

        async def rows() -> Results:
            return results_of(await read())

        return self._caller.core.submit(rows)

    def read_columns(
        self, offset: int, reader: str | None, wait: float, **asked: Unpack[ReadArguments]
    ) -> "Future[ResultColumns]":
        return self._caller.core.submit(self._reading(offset, reader, wait, asked))

    def _reading(
        self, offset: int, reader: str | None, wait: float, asked: ReadArguments
    ) -> Callable[[], Coroutine[Any, Any, ResultColumns]]:
        if reader is not None and offset:
            raise InvalidArgument("offset: a named reader goes on where it is; give one of the two")
        name = "" if reader is None else to_reader(reader)
        return partial(self._read, to_asked(offset, **asked), name, to_ms("wait", wait))

    async def _read(self, asked: Asked, reader: str, wait_ms: int) -> ResultColumns:
        """Until there are results, or the time is up and all that is there was looked at."""
        time = self._caller.core.time
        give_up_at = time() + wait_ms / SECOND_MS
        missed = 0
        while True:
            round_ms = max(0, min(_WAIT_ROUND_MS, int((give_up_at - time()) * SECOND_MS)))
            send = partial(send_read, asked, reader, round_ms)
            read = read_results((await self._call(send, round_ms)).resp)
            if reader and not asked.batch:
                # Each round asks anew where the reader is: somebody else may have acknowledged.
                if read.ids or time() + 0.001 > give_up_at:
                    return read
                continue
            has_moved = bool(reader) or read.next_offset > asked.offset
            missed += read.missed
            asked, reader = replace(asked, offset=read.next_offset), ""
            is_over = asked.before and asked.offset >= asked.before
            if read.ids or is_over or (not has_moved and time() + 0.001 > give_up_at):
                return replace(read, missed=missed)

    def ack_results(self, reader: str, offset: int) -> "Future[None]":
        to_number("offset", offset)
        return self._caller.core.submit(partial(self._ack, to_reader(reader), offset))

    async def _ack(self, reader: str, offset: int) -> None:
        await self._call(lambda queue: queue.ackResults(reader, offset))

    def drop_reader(self, reader: str) -> "Future[bool]":
        return self._caller.core.submit(partial(self._drop, to_reader(reader)))

    async def _drop(self, reader: str) -> bool:
        # Repeated, it would say that there was none.
        response = await self._caller.call(
            lambda queue: queue.dropReader(reader), is_repeatable=False
        )
        return bool(response.dropped)

    def log_stats(self) -> "Future[LogStats]":
        return self._caller.core.submit(self._log_stats)

    async def _log_stats(self) -> LogStats:
        return read_log_stats((await self._call(lambda queue: queue.listReaders())).log)

    def _call(self, send: Any, wait_ms: int = 0) -> Coroutine[Any, Any, Any]:
        return self._caller.call(send, is_repeatable=True, wait_seconds=wait_ms / SECOND_MS)


def _send_wait_batch(batch: str, timeout_ms: int, queue: Any) -> Any:
    return queue.waitBatch(batch, timeout_ms)
