"""Snapshots for users: a queue as it was at one moment, read in parts while others go on.

The server keeps a snapshot until it is closed, or nobody has read it for ten minutes. It can be
read over several connections and by other processes: `queue.snapshot(info)` is the same one.
"""

from collections.abc import AsyncIterator, Iterator
from typing import Self

from queueber.client.arguments import Columns, State
from queueber.client.calls import QueueCalls
from queueber.client.operating import PeekPage
from queueber.client.waiting import wait_for, wait_for_async
from queueber.limits import SCAN_ITEMS_MAX
from queueber.model import (
    ItemColumns,
    ItemInfo,
    ItemState,
    ResultColumns,
    Results,
    SnapshotInfo,
    SnapshotRange,
)


class Snapshot:
    def __init__(self, calls: QueueCalls, info: SnapshotInfo) -> None:
        self._calls = calls
        self.info = info

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def scan(
        self,
        state: State = ItemState.READY,
        *,
        after: bytes = b"",
        before: bytes = b"",
        limit: int = SCAN_ITEMS_MAX,
        batch: str | None = None,
        without: Columns = (),
    ) -> PeekPage:
        """A page of the items that were ready, delayed, in progress or dead.

        `after` is the `next` of the page before, `before` a `next` at which to end. Only items of
        `batch`, if one is named. `without` names columns that are not wanted: "contents", "keys",
        "batches" or "attributes". They are not sent, and are empty; so are, always, `group_max` and
        `attempt_times_ms`.
        """
        return wait_for(
            self._calls.snapshots.scan(
                self.info.id,
                state,
                after=after,
                before=before,
                limit=limit,
                batch=batch,
                without=without,
            )
        )

    def scan_columns(
        self,
        state: State = ItemState.READY,
        *,
        after: bytes = b"",
        before: bytes = b"",
        limit: int = SCAN_ITEMS_MAX,
        batch: str | None = None,
        without: Columns = (),
    ) -> ItemColumns:
        """As `scan`, as a list for each column instead of an object for each item."""
        return wait_for(
            self._calls.snapshots.scan_columns(
                self.info.id,
                state,
                after=after,
                before=before,
                limit=limit,
                batch=batch,
                without=without,
            )
        )

    def scan_all(
        self,
        state: State = ItemState.READY,
        *,
        after: bytes = b"",
        before: bytes = b"",
        batch: str | None = None,
        without: Columns = (),
    ) -> Iterator[ItemInfo]:
        """All of them, page by page."""
        while True:
            page = self.scan(state, after=after, before=before, batch=batch, without=without)
            yield from page.items
            if not (after := page.next):
                return

    def read_results(
        self,
        offset: int | None = None,
        *,
        limit: int = 1000,
        batch: str | None = None,
        before: int | None = None,
        without: Columns = (),
    ) -> Results:
        """As `Queue.read_results`, of the results that there were, deleted since or not.

        They begin at `info.first_offset` and end before `info.next_offset`.
        """
        return wait_for(
            self._calls.snapshots.read(
                self.info, offset, limit=limit, batch=batch, before=before, without=without
            )
        )

    def read_columns(
        self,
        offset: int | None = None,
        *,
        limit: int = 1000,
        batch: str | None = None,
        before: int | None = None,
        without: Columns = (),
    ) -> ResultColumns:
        """As `read_results`, as a list for each column instead of an object for each result."""
        return wait_for(
            self._calls.snapshots.read_columns(
                self.info, offset, limit=limit, batch=batch, before=before, without=without
            )
        )

    def split(self, state: State, parts: int) -> list[SnapshotRange]:
        """At most `parts` ranges to be scanned side by side, each with its `after` and `before`.

        Every item of the state is in exactly one of them.
        """
        return wait_for(self._calls.snapshots.split(self.info.id, state, parts))

    def close(self) -> bool:
        """The server need not keep it any more; False when it had ended already."""
        return wait_for(self._calls.snapshots.close(self.info.id))


class AsyncSnapshot:
    """As `Snapshot`; its calls await."""

    def __init__(self, calls: QueueCalls, info: SnapshotInfo) -> None:
        self._calls = calls
        self.info = info

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()

    async def scan(
        self,
        state: State = ItemState.READY,
        *,
        after: bytes = b"",
        before: bytes = b"",
        limit: int = SCAN_ITEMS_MAX,
        batch: str | None = None,
        without: Columns = (),
    ) -> PeekPage:
        """A page of the items that were ready, delayed, in progress or dead."""
        return await wait_for_async(
            self._calls.snapshots.scan(
                self.info.id,
                state,
                after=after,
                before=before,
                limit=limit,
                batch=batch,
                without=without,
            )
        )

    async def scan_columns(
        self,
        state: State = ItemState.READY,
        *,
        after: bytes = b"",
        before: bytes = b"",
        limit: int = SCAN_ITEMS_MAX,
        batch: str | None = None,
        without: Columns = (),
    ) -> ItemColumns:
        """As `scan`, as a list for each column instead of an object for each item."""
        return await wait_for_async(
            self._calls.snapshots.scan_columns(
                self.info.id,
                state,
                after=after,
                before=before,
                limit=limit,
                batch=batch,
                without=without,
            )
        )

    async def scan_all(
        self,
        state: State = ItemState.READY,
        *,
        after: bytes = b"",
        before: bytes = b"",
        batch: str | None = None,
        without: Columns = (),
    ) -> AsyncIterator[ItemInfo]:
        """All of them, page by page."""
        while True:
            page = await self.scan(state, after=after, before=before, batch=batch, without=without)
            for item in page.items:
                yield item
            if not (after := page.next):
                return

    async def read_results(
        self,
        offset: int | None = None,
        *,
        limit: int = 1000,
        batch: str | None = None,
        before: int | None = None,
        without: Columns = (),
    ) -> Results:
        """As `AsyncQueue.read_results`, of the results that there were, deleted since or not."""
        return await wait_for_async(
            self._calls.snapshots.read(
                self.info, offset, limit=limit, batch=batch, before=before, without=without
            )
        )

    async def read_columns(
        self,
        offset: int | None = None,
        *,
        limit: int = 1000,
        batch: str | None = None,
        before: int | None = None,
        without: Columns = (),
    ) -> ResultColumns:
        """As `read_results`, as a list for each column instead of an object for each result."""
        return await wait_for_async(
            self._calls.snapshots.read_columns(
                self.info, offset, limit=limit, batch=batch, before=before, without=without
            )
        )

    async def split(self, state: State, parts: int) -> list[SnapshotRange]:
        """At most `parts` ranges to be scanned side by side, each with its `after` and `before`."""
        return await wait_for_async(self._calls.snapshots.split(self.info.id, state, parts))

    async def aclose(self) -> bool:
        """The server need not keep it any more; False when it had ended already."""
        return await wait_for_async(self._calls.snapshots.close(self.info.id))
