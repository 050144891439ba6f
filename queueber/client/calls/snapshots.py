"""Calls about snapshots: open one, read its items and results, close it."""

from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypedDict, Unpack

from queueber.client.arguments.values import (
    Columns,
    State,
    to_batch,
    to_columns,
    to_cursor,
    to_number,
    to_state,
)
from queueber.client.calls.remote_queue import RemoteQueue
from queueber.client.calls.results import Asked, ReadOptions, send_read, to_asked
from queueber.limits import SCAN_ITEMS_MAX, SPLIT_PARTS_MAX
from queueber.model import (
    Column,
    ItemColumns,
    ItemState,
    ResultColumns,
    SnapshotInfo,
    SnapshotRange,
)
from queueber.wire.lists import write_columns
from queueber.wire.results import read_results
from queueber.wire.snapshots import read_cuts, read_scan, read_snapshot, wire_state


@dataclass(frozen=True, slots=True)
class _Scan:
    snapshot: bytes
    state: ItemState
    after: bytes
    before: bytes
    limit: int
    batch: str
    without: frozenset[Column]


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
            lambda queue: queue.openSnapshot(),
            lambda response: read_snapshot(response.snapshot),
            is_repeatable=True,
        )

    def scan(
        self, snapshot: bytes, state: State, **options: Unpack[ScanOptions]
    ) -> "Future[ItemColumns]":
        scan = _to_scan(snapshot, state, **options)
        return self._queue.connection.submit(partial(self._scan, scan))

    async def _scan(self, scan: _Scan) -> ItemColumns:
        """Skip pages without items of the batch."""
        while True:
            response = await self._queue.call(partial(_send_scan, scan), is_repeatable=True)
            page = read_scan(response.resp)
            if page.ids or not page.next:
                return page
            scan = replace(scan, after=page.next)

    def read(
        self, info: SnapshotInfo, offset: int | None, **options: Unpack[ReadOptions]
    ) -> "Future[ResultColumns]":
        asked = to_asked(info.first_offset if offset is None else offset, **options)
        return self._queue.connection.submit(partial(self._read, info, asked))

    async def _read(self, info: SnapshotInfo, asked: Asked) -> ResultColumns:
        """Read until there are results, or the end is reached."""
        end = min(asked.before or info.next_offset, info.next_offset)
        while True:
            send = partial(send_read, asked, "", 0, snapshot=info.id)
            read = read_results((await self._queue.call(send, is_repeatable=True)).resp)
            if read.ids or read.next_offset >= end:
                return read
            asked = replace(asked, offset=read.next_offset)

    def split(self, snapshot: bytes, state: State, parts: int) -> "Future[list[SnapshotRange]]":
        count = to_number("parts", parts, least=1, limit=SPLIT_PARTS_MAX)
        word = wire_state(to_state(state))
        return self._queue.ask(
            lambda queue: queue.splitSnapshot(snapshot, word, count), read_cuts, is_repeatable=True
        )

    def close(self, snapshot: bytes) -> "Future[bool]":
        # Not safe to repeat: the second time the answer would be False.
        return self._queue.ask(
            lambda queue: queue.closeSnapshot(snapshot),
            lambda response: bool(response.closed),
            is_repeatable=False,
        )


def _to_scan(
    snapshot: bytes,
    state: State,
    *,
    after: bytes = b"",
    before: bytes = b"",
    limit: int = SCAN_ITEMS_MAX,
    batch: str | None = None,
    without: Columns = (),
) -> _Scan:
    return _Scan(
        snapshot,
        to_state(state),
        to_cursor("after", after),
        to_cursor("before", before),
        to_number("limit", limit, least=1, limit=SCAN_ITEMS_MAX),
        "" if batch is None else to_batch(batch),
        to_columns(without),
    )


def _send_scan(scan: _Scan, queue: Any) -> Any:
    request = queue.scanSnapshot_request()
    body = request.init("req")
    body.snapshot = scan.snapshot
    body.state = wire_state(scan.state)
    body.after = scan.after
    body.before = scan.before
    body.limit = scan.limit
    body.batch = scan.batch
    if scan.without:
        write_columns(body.init("without"), scan.without)
    return request.send()
