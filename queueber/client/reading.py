"""What became of items: receipts of batches, and the log of results."""

from collections.abc import Coroutine
from concurrent.futures import Future
from functools import partial
from typing import Any

from queueber.client.arguments import to_batch, to_ms, to_number, to_reader
from queueber.client.caller import Caller
from queueber.errors import InvalidArgument
from queueber.limits import READ_ITEMS_MAX, SECOND_MS
from queueber.model import LogStats, Receipt, Results
from queueber.schema.codec_results import read_log_stats, read_receipt, read_results

_WAIT_ROUND_MS = 20 * SECOND_MS
"""How long one call waits: a longer wait is several, so that none outlives its connection long."""


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
        self, offset: int, *, reader: str | None, limit: int, wait: float
    ) -> "Future[Results]":
        to_number("offset", offset)
        to_number("limit", limit, least=1, limit=READ_ITEMS_MAX)
        if reader is not None and offset:
            raise InvalidArgument("offset: a named reader goes on where it is; give one of the two")
        name = "" if reader is None else to_reader(reader)
        wait_ms = to_ms("wait", wait)
        return self._caller.core.submit(partial(self._read, name, offset, limit, wait_ms))

    async def _read(self, reader: str, offset: int, limit: int, wait_ms: int) -> Results:
        time = self._caller.core.time
        give_up_at = time() + wait_ms / SECOND_MS
        while True:
            round_ms = max(0, min(_WAIT_ROUND_MS, int((give_up_at - time()) * SECOND_MS)))

            def send(queue: Any, timeout_ms: int = round_ms) -> Any:
                request = queue.readResults_request()
                body = request.init("req")
                body.reader = reader
                body.offset = offset
                body.limit = limit
                body.timeoutMs = timeout_ms
                return request.send()

            read = read_results((await self._call(send, round_ms)).resp)
            if read.results or time() + 0.001 > give_up_at:
                return read

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
