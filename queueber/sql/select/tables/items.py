"""queue('name'), dead('name') and results('name'): a queue as it was at one moment."""

from collections.abc import AsyncIterator

import pyarrow as pa

from queueber.client import AsyncSnapshot
from queueber.limits import BATCH_NAME_BYTES_MAX
from queueber.model import ItemColumns, ItemState
from queueber.sql.select.columns import sent_columns
from queueber.sql.select.needs import Need
from queueber.tables.pages import dead_page, items_page, results_page, unwanted

_PAGE_RESULTS = 2048


class Items:
    """Items of a snapshot, state by state."""

    def __init__(self, snapshot: AsyncSnapshot, need: Need) -> None:
        self._snapshot = snapshot
        self._need = need
        self._names = sent_columns(need.kind, need.columns)

    @property
    def _states(self) -> list[ItemState]:
        if self._need.kind != "queue":
            return [ItemState.DEAD]
        wanted = self._need.texts("state")
        return [each for each in ItemState if wanted is None or each.value in wanted]

    def rows_at_least(self) -> int:
        if self._need.rows is not None or "batch" in self._need.equal:
            return 0
        info = self._snapshot.info
        counts = {
            ItemState.READY: info.ready,
            ItemState.DELAYED: info.delayed,
            ItemState.LEASED: info.leased,
            ItemState.DEAD: info.dead,
        }
        return sum(counts[each] for each in self._states)

    async def pages(self, names: list[str] | None = None) -> AsyncIterator[pa.RecordBatch]:
        names = self._names if names is None else names
        left = self._need.rows
        for state in self._states:
            async for page in scanned(self._snapshot, state, self._need, names):
                if left is not None and left <= 0:
                    return
                batch = items_page(page, names, state, self._snapshot.info.taken_at_ms)
                batch = batch if left is None else batch.slice(0, left)
                left = None if left is None else left - batch.num_rows
                yield batch


class Results:
    """What was done, in the order of the log, then what is dead."""

    def __init__(self, snapshot: AsyncSnapshot, need: Need) -> None:
        self._snapshot = snapshot
        self._need = need
        self._names = sent_columns(need.kind, need.columns)
        wanted = need.texts("status")
        self._has_done = wanted is None or "done" in wanted
        # A dead letter has no offset, so it fits no condition on it.
        is_by_offset = bool({"offset"} & {*need.least, *need.most})
        self._has_dead = (wanted is None or "dead" in wanted) and not is_by_offset
        info = snapshot.info
        self._first = max(info.first_offset, need.least.get("offset", 0))
        self._end = min(info.next_offset, need.most.get("offset", info.next_offset) + 1)

    def rows_at_least(self) -> int:
        if self._need.rows is not None or "batch" in self._need.equal:
            return 0
        done = max(0, self._end - self._first) if self._has_done else 0
        return done + (self._snapshot.info.dead if self._has_dead else 0)

    async def pages(self) -> AsyncIterator[pa.RecordBatch]:
        left = self._need.rows
        async for batch in self._all():
            if left is not None and left <= 0:
                return
            wanted = batch if left is None else batch.slice(0, left)
            left = None if left is None else left - wanted.num_rows
            yield wanted

    async def _all(self) -> AsyncIterator[pa.RecordBatch]:
        names = [each for each in self._names if each != "offset"]
        batch = only_batch(self._need)
        at = self._first
        while self._has_done and at < self._end:
            page = await self._snapshot.read_columns(
                at, before=self._end, batch=batch, without=unwanted(names), limit=_PAGE_RESULTS
            )
            if page.ids:
                offsets = pa.array(page.offsets, pa.int64())
                yield self._with_offsets(results_page(page, names), offsets)
            at = page.next_offset
        if self._has_dead:
            async for dead in scanned(self._snapshot, ItemState.DEAD, self._need, names):
                nothing = pa.nulls(len(dead.ids), pa.int64())
                yield self._with_offsets(dead_page(dead, names), nothing)

    def _with_offsets(self, batch: pa.RecordBatch, offsets: pa.Array) -> pa.RecordBatch:
        arrays = [offsets if name == "offset" else batch.column(name) for name in self._names]
        return pa.RecordBatch.from_arrays(arrays, names=self._names)


async def scanned(
    snapshot: AsyncSnapshot, state: ItemState, need: Need, names: list[str]
) -> AsyncIterator[ItemColumns]:
    """The pages of a state that have items."""
    after, batch = b"", only_batch(need)
    while True:
        page = await snapshot.scan_columns(state, after=after, batch=batch, without=unwanted(names))
        if page.ids:
            yield page
        if not (after := page.next):
            return


def only_batch(need: Need) -> str | None:
    """The batch, if the statement asks for one alone."""
    found = need.texts("batch")
    if found is None or len(found) != 1:
        return None
    (name,) = found
    return name if 0 < len(name.encode()) <= BATCH_NAME_BYTES_MAX else None
