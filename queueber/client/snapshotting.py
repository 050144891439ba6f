"""Calls about snapshots: open one, read its items and results, close it."""

from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypedDict, Unpack

from queueber.client.arguments import (
    Columns,
    State,
    to_batch,
    to_columns,
    to_cursor,
    to_number,
    to_state,
)
from queueber.client.caller import Caller
from queueber.client.operating import PeekPage
from queueber.client.reading import Asked, ReadArguments, send_read, to_asked
from queueber.limits import SCAN_ITEMS_MAX, SPLIT_PARTS_MAX
from queueber.model import (
    Column,
    ItemColumns,
    ItemState,
    ResultColumns,
    Results,
    SnapshotInfo,
    SnapshotRange,
)
from queueber.wire.lists import write_columns
from queueber.wire.results import read_results, results_of
from queueber.wire.snapshots import items_of, read_cuts, read_scan, read_snapshot
from queueber.wire.states import wire_state


@dataclass(frozen=True, slots=True)
class _Scan:
    snapshot: bytes
    state: ItemState
    after: bytes
    before: bytes
    limit: int
    batch: str
    without: frozenset[Column]


class ScanArguments(TypedDict):
    """Which items a user asks for; see `Snapshot.scan`."""

    after: bytes
    before: bytes
    limit: int
    batch: str | None
    without: Columns


class SnapshotCalls:
    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def open(self) -> "Future[SnapshotInfo]":
        return self._caller.core.submit(self._open)

    async def _open(self) -> SnapshotInfo:
        # Repeated after a lost connection, it may leave one behind that nobody reads: it expires.
        response = await self._caller.call(lambda queue: queue.openSnapshot(), is_repeatable=True)
        return read_snapshot(response.snapshot)

    def scan(
        self, snapshot: bytes, state: State, **asked: Unpack[ScanArguments]
    ) -> "Future[PeekPage]":
        scan = _to_scan(snapshot, state, **asked)

        async def rows() -> PeekPage:
            columns = await self._scan(scan)
            return PeekPage(items_of(columns), columns.next)

        return self._caller.core.submit(rows)

    def scan_columns(
        self, snapshot: bytes, state: State, **asked: Unpack[ScanArguments]
    ) -> "Future[ItemColumns]":
        return self._caller.core.submit(partial(self._scan, _to_scan(snapshot, state, **asked)))

    async def _scan(self, scan: _Scan) -> ItemColumns:
        """Pages in which nothing was of the batch are passed over."""
        while True:
            response = await self._caller.call(partial(_send_scan, scan), is_repeatable=True)
            page = read_scan(response.resp)
            if page.ids or not page.next:
                return page
            scan = replace(scan, after=page.next)

    def read(
        self, info: SnapshotInfo, offset: int | None, **asked: Unpack[ReadArguments]
    ) -> "Future[Results]":
        to_read = to_asked(info.first_offset if offset is None else offset, **asked)

        async def rows() -> Results:
            return results_of(await self._read(info, to_read))

        return self._caller.core.submit(rows)

    def read_columns(
        self, info: SnapshotInfo, offset: int | None, **asked: Unpack[ReadArguments]
    ) -> "Future[ResultColumns]":
        to_read = to_asked(info.first_offset if offset is None else offset, **asked)
        return self._caller.core.submit(partial(self._read, info, to_read))

    async def _read(self, info: SnapshotInfo, asked: Asked) -> ResultColumns:
        """Until there are results, or none is left."""
        end = min(asked.before or info.next_offset, info.next_offset)
        while True:
            send = partial(send_read, asked, "", 0, snapshot=info.id)
            read = read_results((await self._caller.call(send, is_repeatable=True)).resp)
            if read.ids or read.next_offset >= end:
                return read
            asked = replace(asked, offset=read.next_offset)

    def split(self, snapshot: bytes, state: State, parts: int) -> "Future[list[SnapshotRange]]":
        count = to_number("parts", parts, least=1, limit=SPLIT_PARTS_MAX)
        word = wire_state(to_state(state))

        async def ranges() -> list[SnapshotRange]:
            response = await self._caller.call(
                lambda queue: queue.splitSnapshot(snapshot, word, count), is_repeatable=True
            )
            return read_cuts(response)

        return self._caller.core.submit(ranges)

    def close(self, snapshot: bytes) -> "Future[bool]":
        return self._caller.core.submit(partial(self._close, snapshot))

    async def _close(self, snapshot: bytes) -> bool:
        # Repeated, it would say that it had ended.
        response = await self._caller.call(
            lambda queue: queue.closeSnapshot(snapshot), is_repeatable=False
        )
        return bool(response.closed)


def _to_scan(
    snapshot: bytes,
    state: State,
    *,
    after: bytes,
    before: bytes,
    limit: int,
    batch: str | None,
    without: Columns,
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
