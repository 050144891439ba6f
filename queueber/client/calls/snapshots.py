"""Calls about snapshots: open one, read its items and results, close it."""

from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from operator import methodcaller
from typing import Any, TypedDict, Unpack

from queueber.client.arguments import values
from queueber.client.arguments.values import Columns, State
from queueber.client.calls.results import ReadOptions, to_read
from queueber.client.transport.remote_queue import RemoteQueue
from queueber.limits import SCAN_ITEMS_MAX, SPLIT_PARTS_MAX
from queueber.model import ItemColumns, ResultColumns, SnapshotInfo, SnapshotRange
from queueber.wire.results import read_results
from queueber.wire.snapshots import read_cuts, read_scan, read_snapshot, wire_state


class ScanOptions(TypedDict, total=False):
    """Which items to read; see `Snapshot.scan`."""

    after: bytes
    before: bytes
    limit: int
    batch: str | None
    without: Columns


class SnapshotCalls:
    def __init__(self, queue: RemoteQueue) -> None:
        self._queue = queue

    def open(self) -> "Future[SnapshotInfo]":
        # Safe to repeat: a snapshot that nobody reads expires.
        return self._queue.ask(
            methodcaller("openSnapshot"), lambda response: read_snapshot(response.snapshot)
        )

    def scan(
        self, snapshot: bytes, state: State, **options: Unpack[ScanOptions]
    ) -> "Future[ItemColumns]":
        asked = _to_scan(state, **options) | {"snapshot": snapshot}
        return self._queue.connection.submit(partial(self._scan, asked))

    async def _scan(self, asked: dict[str, Any]) -> ItemColumns:
        """Skip pages without items of the batch."""
        while True:
            send = methodcaller("scanSnapshot", asked)
            page = read_scan((await self._queue.call(send, is_repeatable=True)).resp)
            if page.ids or not page.next:
                return page
            asked["after"] = page.next

    def read(
        self, info: SnapshotInfo, offset: int | None, **options: Unpack[ReadOptions]
    ) -> "Future[ResultColumns]":
        asked = to_read(info.first_offset if offset is None else offset, **options)
        end = min(asked["before"] or info.next_offset, info.next_offset)
        asked["snapshot"] = info.id
        return self._queue.connection.submit(partial(self._read, asked, end))

    async def _read(self, asked: dict[str, Any], end: int) -> ResultColumns:
        """Read until there are results, or the end is reached."""
        missed = 0
        while True:
            send = methodcaller("readResults", asked)
            read = read_results((await self._queue.call(send, is_repeatable=True)).resp)
            missed += read.missed
            if read.ids or read.next_offset >= end:
                return replace(read, missed=missed)
            asked["offset"] = read.next_offset

    def split(self, snapshot: bytes, state: State, parts: int) -> "Future[list[SnapshotRange]]":
        count = values.to_number("parts", parts, least=1, limit=SPLIT_PARTS_MAX)
        send = methodcaller("splitSnapshot", snapshot, wire_state(values.to_state(state)), count)
        return self._queue.ask(send, read_cuts)

    def close(self, snapshot: bytes) -> "Future[bool]":
        # Not safe to repeat: the second time the answer would be False.
        return self._queue.ask(
            methodcaller("closeSnapshot", snapshot),
            lambda response: bool(response.closed),
            is_repeatable=False,
        )


def _to_scan(
    state: State,
    *,
    after: bytes = b"",
    before: bytes = b"",
    limit: int = SCAN_ITEMS_MAX,
    batch: str | None = None,
    without: Columns = (),
) -> dict[str, Any]:
    """The fields of a request. Empty means no condition."""
    return {
        "state": wire_state(values.to_state(state)),
        "after": values.to_cursor("after", after),
        "before": values.to_cursor("before", before),
        "limit": values.to_number("limit", limit, least=1, limit=SCAN_ITEMS_MAX),
        "batch": "" if batch is None else values.to_batch(batch),
        "without": values.to_columns(without),
    }
