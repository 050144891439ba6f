"""A queue for asyncio and trio: its calls await; all else is as in `queue.py`."""

from collections.abc import AsyncIterator

from queueber.client.adding import AddedIds
from queueber.client.arguments import Columns, CompletedResults, Contents, Errors, ItemIds, State
from queueber.client.calls import QueueCalls
from queueber.client.lease import AsyncLease
from queueber.client.load import AsyncLoad
from queueber.client.loading import to_load_ref
from queueber.client.new_items import Attributes, Delay, Key, Priority
from queueber.client.operating import PeekPage
from queueber.client.producer import AsyncProducer
from queueber.client.snapshot import AsyncSnapshot
from queueber.client.waiting import wait_for_async
from queueber.limits import PRIORITY_DEFAULT
from queueber.model import (
    FailOutcome,
    ItemInfo,
    ItemState,
    LoadInfo,
    LogStats,
    Origin,
    Receipt,
    Result,
    ResultColumns,
    Results,
    SnapshotInfo,
    Stats,
)


class AsyncQueue:
    def __init__(self, calls: QueueCalls) -> None:
        self._calls = calls

    @property
    def name(self) -> str:
        return self._calls.name

    # --- items ------------------------------------------------------------------------------------

    async def add(
        self,
        contents: Contents,
        *,
        delay: Delay = 0,
        priority: Priority = PRIORITY_DEFAULT,
        key: Key = None,
        attributes: Attributes = None,
        batch: str | None = None,
        origin: Origin | None = None,
    ) -> AddedIds:
        """Store items, all or none, and return their ids in order."""
        return await wait_for_async(
            self._calls.adds.add(
                contents,
                delay=delay,
                priority=priority,
                key=key,
                attributes=attributes,
                batch=batch,
                origin=origin,
            )
        )

    def producer(self, id: str, epoch: int) -> AsyncProducer:
        """One who adds under a name, and may repeat it: what was stored is not stored again."""
        return AsyncProducer(self._calls.numbered_adds(id, epoch))

    async def poll(
        self, count: int = 1, *, lease: float | None = None, wait: float = 0, bound: bool = False
    ) -> AsyncLease:
        """Lease up to `count` items for `lease` seconds, or as long as the queue's settings say."""
        future = self._calls.polls.poll(count, lease=lease, wait=wait, bound=bound)
        try:
            return AsyncLease(self._calls, await wait_for_async(future))
        except BaseException:
            self._calls.polls.give_back(future)
            raise

    # --- loads ------------------------------------------------------------------------------------

    async def load(
        self,
        name: str,
        *,
        epoch: int = 0,
        batch: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109  of the load, not of the call
        must_exist: bool = False,
    ) -> AsyncLoad:
        """Begin the load of that name, or join it: many items that become visible at once.

        All belong to `batch`. What was committed in an `epoch` is not loaded again in it. The load
        is dropped when nobody calls for `timeout` seconds. One that `must_exist` is not begun: if
        it is neither under way nor committed, the call raises `NotFound`.
        """
        calls = self._calls.loads
        ref = to_load_ref(name, epoch)
        return AsyncLoad(
            calls,
            await wait_for_async(
                calls.begin(ref, batch=batch, timeout=timeout, must_exist=must_exist)
            ),
        )

    async def abort_load(self, name: str, *, epoch: int = 0) -> bool:
        """Drop all that was staged; False when there is no such load, or it is committed."""
        return await wait_for_async(self._calls.loads.abort(to_load_ref(name, epoch)))

    async def loads(self) -> list[LoadInfo]:
        """The loads that are under way."""
        return await wait_for_async(self._calls.loads.all())

    # --- with the id of a lease -------------------------------------------------------------------

    async def extend(self, lease: bytes, seconds: float) -> bool:
        """Let the lease end `seconds` from now; False when it has ended already."""
        return await wait_for_async(self._calls.outcomes.extend(lease, seconds))

    async def remove(self, ids: ItemIds, lease: bytes) -> list[bool]:
        """For each id, whether the lease held it and it is now gone."""
        return await wait_for_async(self._calls.outcomes.remove(ids, lease))

    async def complete(self, ids: ItemIds, results: CompletedResults, lease: bytes) -> list[bool]:
        """As `remove`, and keep a result for each in the queue's log."""
        return await wait_for_async(self._calls.outcomes.complete(ids, results, lease))

    async def fail(
        self, ids: ItemIds, error: Errors, lease: bytes, *, delay: float | None = None
    ) -> list[FailOutcome]:
        """For each id, what becomes of it now that it failed; see `Lease.fail`."""
        return await wait_for_async(self._calls.outcomes.fail(ids, error, lease, delay))

    async def release(self, ids: ItemIds, lease: bytes) -> list[bool]:
        """For each id, whether the lease held it and others may have it now."""
        return await wait_for_async(self._calls.outcomes.release(ids, lease))

    # --- what became of them ----------------------------------------------------------------------

    async def receipt(self, batch: str) -> Receipt:
        """What became of a batch so far."""
        return await wait_for_async(self._calls.reads.receipt(batch))

    async def wait_batch(
        self,
        batch: str,
        timeout: float | None = None,  # noqa: ASYNC109  it ends with an answer, not an error
    ) -> Receipt:
        """Wait until every item of a batch is done or dead; its receipt as it is after `timeout`
        seconds."""
        return await wait_for_async(self._calls.reads.wait_batch(batch, timeout))

    async def read_results(
        self,
        offset: int = 0,
        *,
        reader: str | None = None,
        limit: int = 1000,
        wait: float = 0,
        batch: str | None = None,
        before: int | None = None,
        without: Columns = (),
    ) -> Results:
        """Up to `limit` results from `offset` on, or from where `reader` has acknowledged."""
        return await wait_for_async(
            self._calls.reads.read_results(
                offset, reader, wait, limit=limit, batch=batch, before=before, without=without
            )
        )

    async def read_columns(
        self,
        offset: int = 0,
        *,
        reader: str | None = None,
        limit: int = 1000,
        wait: float = 0,
        batch: str | None = None,
        before: int | None = None,
        without: Columns = (),
    ) -> ResultColumns:
        """As `read_results`, as a list for each column instead of an object for each result."""
        return await wait_for_async(
            self._calls.reads.read_columns(
                offset, reader, wait, limit=limit, batch=batch, before=before, without=without
            )
        )

    async def results(
        self, reader: str | None = None, offset: int = 0, *, wait: float = 0
    ) -> AsyncIterator[Result]:
        """Every result from `offset` on, or from where `reader` has acknowledged."""
        while (page := await self.read_results(offset, reader=reader, wait=wait)).results:
            for result in page.results:
                yield result
            if reader is None:
                offset = page.next_offset
            else:
                await self.ack_results(reader, page.next_offset)

    async def ack_results(self, reader: str, offset: int) -> None:
        """`reader` needs nothing before `offset` any more. The first call makes it known: results
        go once all readers that are known have acknowledged them."""
        await wait_for_async(self._calls.reads.ack_results(reader, offset))

    async def drop_reader(self, reader: str) -> bool:
        """Forget a reader; False when there is none."""
        return await wait_for_async(self._calls.reads.drop_reader(reader))

    async def log_stats(self) -> LogStats:
        """The log of results in numbers, and how far each reader is."""
        return await wait_for_async(self._calls.reads.log_stats())

    # --- operating --------------------------------------------------------------------------------

    async def stats(self) -> Stats:
        """The queue in numbers."""
        return await wait_for_async(self._calls.operates.stats())

    async def peek(
        self, state: State = ItemState.READY, *, limit: int = 100, after: bytes = b""
    ) -> PeekPage:
        """Items that are ready, delayed, in progress or dead, without leasing them."""
        return await wait_for_async(self._calls.operates.peek(state, limit=limit, after=after))

    async def peek_all(self, state: State = ItemState.READY) -> AsyncIterator[ItemInfo]:
        """All of them, page by page. Items that move meanwhile may be left out."""
        page = await self.peek(state)
        for item in page.items:
            yield item
        while page.next:
            page = await self.peek(state, after=page.next)
            for item in page.items:
                yield item

    async def open_snapshot(self) -> AsyncSnapshot:
        """The queue as it is now, to be read while others go on; see `AsyncSnapshot`."""
        return AsyncSnapshot(self._calls, await wait_for_async(self._calls.snapshots.open()))

    def snapshot(self, info: SnapshotInfo) -> AsyncSnapshot:
        """A snapshot that somebody has opened, perhaps in another process: its `info`."""
        return AsyncSnapshot(self._calls, info)

    async def cancel(self, ids: ItemIds) -> list[bool]:
        """Delete items, whatever their state: for each, whether it was there."""
        return await wait_for_async(self._calls.operates.cancel(ids))

    async def purge(self, state: State) -> int:
        """Delete the items that are in a state now, and say how many."""
        return await wait_for_async(self._calls.operates.purge(state))

    async def redrive(self, ids: ItemIds | None = None) -> int:
        """Make dead letters ready again, all that there are when none are named: how many."""
        return await wait_for_async(self._calls.operates.redrive(ids))

    async def pause(self, seconds: float | None = None) -> None:
        """Serve no poll for so long, or until `resume`. Adds and leases go on."""
        await wait_for_async(self._calls.operates.pause(seconds))

    async def resume(self) -> None:
        """Serve polls again."""
        await wait_for_async(self._calls.operates.resume())
