"""A snapshot: a queue as it was at one moment, read page by page while others go on.

The server keeps a snapshot until it is closed, or until nobody has read it for ten minutes. Other
connections and processes can read it, too: `queue.snapshot(info)`.
"""

from collections.abc import AsyncIterator
from typing import Self, Unpack

from queueber import model
from queueber.client.arguments.values import Columns, State
from queueber.client.calls.items import PeekPage
from queueber.client.calls.queue_calls import QueueCalls
from queueber.client.calls.results import ReadOptions
from queueber.client.calls.snapshots import ScanOptions
from queueber.client.transport.futures import wait_for_async
from queueber.wire.results import results_of
from queueber.wire.snapshots import items_of


class AsyncSnapshot:
    """A queue as it was at one moment: its items and its results."""

    def __init__(self, calls: QueueCalls, info: model.SnapshotInfo) -> None:
        self._calls = calls
        self.info = info

    def __repr__(self) -> str:
        return f"<AsyncSnapshot {self.info.id.hex()} queue={self._calls.name!r}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()

    async def scan(self, state: State = "ready", **options: Unpack[ScanOptions]) -> PeekPage:
        """A page of up to `limit` (250) items that were ready, delayed, leased or dead.

        `after` is the `next` of the page before, `before` a `next` at which to stop. Only items of
        `batch`, if one is named. `without` names columns that the server leaves out: "contents",
        "keys", "batches" or "attributes". These are empty; `group_max`, `attempt_times_ms` and what
        items have of their own always are.
        """
        page = await self.scan_columns(state, **options)
        return PeekPage(items_of(page), page.next)

    async def scan_columns(
        self, state: State = "ready", **options: Unpack[ScanOptions]
    ) -> model.ItemColumns:
        """As `scan`, with a list for each column instead of an object for each item."""
        return await wait_for_async(self._calls.snapshots.scan(self.info.id, state, **options))

    async def scan_all(
        self,
        state: State = "ready",
        *,
        after: bytes = b"",
        before: bytes = b"",
        batch: str | None = None,
        without: Columns = (),
    ) -> AsyncIterator[model.ItemInfo]:
        """All of them, page by page."""
        while True:
            page = await self.scan(state, after=after, before=before, batch=batch, without=without)
            for item in page.items:
                yield item
            if not (after := page.next):
                return

    async def read_results(
        self, offset: int | None = None, **options: Unpack[ReadOptions]
    ) -> model.Results:
        """As `AsyncQueue.read_results`, of the results that there were, deleted since or not.

        They begin at `info.first_offset` and end before `info.next_offset`.
        """
        return results_of(await self.read_columns(offset, **options))

    async def read_columns(
        self, offset: int | None = None, **options: Unpack[ReadOptions]
    ) -> model.ResultColumns:
        """As `read_results`, with a list for each column instead of an object for each result."""
        return await wait_for_async(self._calls.snapshots.read(self.info, offset, **options))

    async def split(self, state: State, parts: int) -> list[model.SnapshotRange]:
        """At most `parts` ranges to be scanned side by side, each with its `after` and `before`.

        Every item of the state is in exactly one of them.
        """
        return await wait_for_async(self._calls.snapshots.split(self.info.id, state, parts))

    async def aclose(self) -> bool:
        """Let the server drop the snapshot; False when it had ended already."""
        return await wait_for_async(self._calls.snapshots.close(self.info.id))
