"""Looking for one item, call after call while its result may be further on."""

from concurrent.futures import Future
from functools import partial
from operator import methodcaller

from queueber.client.arguments import values
from queueber.client.transport.remote_queue import RemoteQueue
from queueber.errors import InvalidArgument, OutOfRange
from queueber.limits import KEY_BYTES_MAX
from queueber.model import FoundItem
from queueber.wire.found import read_finding

FIND_CALLS_MAX = 100
"""Calls after which a result is no longer looked for: up to a million results."""


class FindCalls:
    def __init__(self, queue: RemoteQueue) -> None:
        self._queue = queue

    def find(self, id: values.Id | None, key: str | None) -> "Future[FoundItem | None]":
        if (id is None) == (key is None):
            raise InvalidArgument("id: give an id or a key, and not both")
        item_id = b"" if id is None else values.to_id("id", id)
        text = "" if key is None else values.to_text("key", key, KEY_BYTES_MAX, is_needed=True)
        return self._queue.connection.submit(partial(self._find, item_id, text))

    async def _find(self, item_id: bytes, key: str) -> FoundItem | None:
        after = 0
        for _ in range(FIND_CALLS_MAX):
            asked = methodcaller("findItem", item_id, key, after)
            finding = read_finding(await self._queue.call(asked, is_repeatable=True))
            if finding.found is not None or not finding.next_offset:
                return finding.found
            item_id, key, after = finding.id, "", finding.next_offset
        raise OutOfRange(
            f"item {item_id.hex()} is not in the queue, and its "
            f"result was not among those before offset {after}; read further results from there on"
        )
