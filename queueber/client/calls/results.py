"""Calls about finished items: receipts of batches, and the results that are kept."""

from collections.abc import Coroutine
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypedDict, Unpack

from queueber.client.arguments.values import (
    Columns,
    Seconds,
    to_batch,
    to_columns,
    to_ms,
    to_number,
    to_reader,
)
from queueber.client.calls.remote_queue import RemoteQueue
from queueber.errors import InvalidArgument
from queueber.limits import READ_ITEMS_MAX, SECOND_MS
from queueber.model import Column, LogStats, Receipt, ResultColumns
from queueber.wire.lists import write_columns
from queueber.wire.results import read_log_stats, read_receipt, read_results

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


@dataclass(frozen=True, slots=True)
class Asked:
    """Which results a call asks for. Empty and 0 mean no condition."""

    offset: int
    limit: int
    before: int
    batch: str
    without: frozenset[Column]


def to_asked(
    offset: int,
    *,
    limit: int = 1000,
    batch: str | None = None,
    before: int | None = None,
    without: Columns = (),
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


class ResultCalls:
    """All but `drop_reader` are safe to repeat."""

    def __init__(self, queue: RemoteQueue) -> None:
        self._queue = queue

    def receipt(self, batch: str) -> "Future[Receipt]":
        name = to_batch(batch)
        return self._queue.ask(
            lambda queue: queue.receipt(name),
            lambda response: read_receipt(response.receipt),
            is_repeatable=True,
        )

    def wait_for_batch(self, batch: str, timeout: Seconds | None) -> "Future[Receipt]":
        timeout_ms = None if timeout is None else to_ms("timeout", timeout)
        return self._queue.connection.submit(
            partial(self._wait_for_batch, to_batch(batch), timeout_ms)
        )

    async def _wait_for_batch(self, batch: str, timeout_ms: int | None) -> Receipt:
        time = self._queue.connection.time
        give_up_at = None if timeout_ms is None else time() + timeout_ms / SECOND_MS
        while True:
            round_ms = _WAIT_ROUND_MS
            if give_up_at is not None:
                round_ms = max(0, min(round_ms, int((give_up_at - time()) * SECOND_MS)))
            response = await self._call(partial(_send_wait_batch, batch, round_ms), round_ms)
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
        name = "" if reader is None else to_reader(reader)
        asked = to_asked(offset, **options)
        return self._queue.connection.submit(partial(self._read, asked, name, to_ms("wait", wait)))

    async def _read(self, asked: Asked, reader: str, wait_ms: int) -> ResultColumns:
        """Read until there are results, or the wait is over and the end was reached."""
        time = self._queue.connection.time
        give_up_at = time() + wait_ms / SECOND_MS
        missed = 0
        while True:
            round_ms = max(0, min(_WAIT_ROUND_MS, int((give_up_at - time()) * SECOND_MS)))
            send = partial(send_read, asked, reader, round_ms)
            read = read_results((await self._call(send, round_ms)).resp)
            if reader and not asked.batch:
                # Every call asks where the reader is: somebody else may have acknowledged.
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
        name = to_reader(reader)
        to_number("offset", offset)
        return self._queue.ask(
            lambda queue: queue.ackResults(name, offset), lambda _: None, is_repeatable=True
        )

    def drop_reader(self, reader: str) -> "Future[bool]":
        name = to_reader(reader)
        # Not safe to repeat: the second time the answer would be False.
        return self._queue.ask(
            lambda queue: queue.dropReader(name),
            lambda response: bool(response.dropped),
            is_repeatable=False,
        )

    def stats(self) -> "Future[LogStats]":
        return self._queue.ask(
            lambda queue: queue.listReaders(),
            lambda response: read_log_stats(response.log),
            is_repeatable=True,
        )

    def _call(self, send: Any, wait_ms: int = 0) -> Coroutine[Any, Any, Any]:
        return self._queue.call(send, is_repeatable=True, wait_seconds=wait_ms / SECOND_MS)


def _send_wait_batch(batch: str, timeout_ms: int, queue: Any) -> Any:
    return queue.waitBatch(batch, timeout_ms)
