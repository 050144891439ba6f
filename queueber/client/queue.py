"""A queue for plain code: every call blocks until it is answered."""

from collections.abc import Iterator
from concurrent.futures import Future
from typing import Unpack

from queueber.client.adding import AddedIds
from queueber.client.arguments import Columns, CompletedResults, Contents, Errors, ItemIds, State
from queueber.client.calls import QueueCalls
from queueber.client.lease import Lease
from queueber.client.load import Load
from queueber.client.loading import to_load_ref
from queueber.client.new_items import AddOptions, Attributes, Delay, Key, Priority
from queueber.client.operating import PeekPage
from queueber.client.producer import Producer
from queueber.client.snapshot import Snapshot
from queueber.client.waiting import wait_for
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


class Queue:
    def __init__(self, calls: QueueCalls) -> None:
        self._calls = calls

    @property
    def name(self) -> str:
        return self._calls.name

    # --- items ------------------------------------------------------------------------------------

    def add(
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
        """Store items, all or none, and return their ids in order.

        `delay` is how many seconds they stay hidden, `priority` is from 0 to 9, higher first: one
        for all, or one for each. An item whose `key` was used within the queue's dedup window is
        not stored again: its id is that of the first, and the list that is returned says so in
        `duplicates`. `attributes` is a mapping of text that goes with each item, or one for each.
        `batch` names what all of them belong to, for `receipt` and `wait_batch`. Ids of items with
        an `origin` tell it; its load must be under way.
        """
        return wait_for(
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

    def add_soon(self, contents: Contents, **options: Unpack[AddOptions]) -> "Future[AddedIds]":
        """As `add`, but returns at once: several calls may be under way, and stay in order."""
        return self._calls.adds.add(contents, **options)

    def producer(self, id: str, epoch: int) -> Producer:
        """One who adds under a name, and may repeat it: what was stored is not stored again.

        Of two with the same `id`, the one with the greater `epoch` is in charge.
        """
        return Producer(self._calls.numbered_adds(id, epoch))

    def poll(
        self, count: int = 1, *, lease: float | None = None, wait: float = 0, bound: bool = False
    ) -> Lease:
        """Lease up to `count` items for `lease` seconds, or as long as the queue's settings say.

        With none ready, wait up to `wait` seconds. A lease without items is false. A `bound` lease
        also ends when the client's connection does.
        """
        future = self._calls.polls.poll(count, lease=lease, wait=wait, bound=bound)
        try:
            return Lease(self._calls, wait_for(future))
        except BaseException:
            self._calls.polls.give_back(future)
            raise

    # --- loads ------------------------------------------------------------------------------------

    def load(
        self,
        name: str,
        *,
        epoch: int = 0,
        batch: str | None = None,
        timeout: float | None = None,
        must_exist: bool = False,
    ) -> Load:
        """Begin the load of that name, or join it: many items that become visible at once.

        All belong to `batch`. What was committed in an `epoch` is not loaded again in it. The load
        is dropped when nobody calls for `timeout` seconds. One that `must_exist` is not begun: if
        it is neither under way nor committed, the call raises `NotFound`.
        """
        calls = self._calls.loads
        ref = to_load_ref(name, epoch)
        return Load(
            calls, wait_for(calls.begin(ref, batch=batch, timeout=timeout, must_exist=must_exist))
        )

    def abort_load(self, name: str, *, epoch: int = 0) -> bool:
        """Drop all that was staged; False when there is no such load, or it is committed."""
        return wait_for(self._calls.loads.abort(to_load_ref(name, epoch)))

    def loads(self) -> list[LoadInfo]:
        """The loads that are under way."""
        return wait_for(self._calls.loads.all())

    # --- with the id of a lease -------------------------------------------------------------------

    def extend(self, lease: bytes, seconds: float) -> bool:
        """Let the lease end `seconds` from now; False when it has ended already."""
        return wait_for(self._calls.outcomes.extend(lease, seconds))

    def remove(self, ids: ItemIds, lease: bytes) -> list[bool]:
        """For each id, whether the lease held it and it is now gone."""
        return wait_for(self._calls.outcomes.remove(ids, lease))

    def complete(self, ids: ItemIds, results: CompletedResults, lease: bytes) -> list[bool]:
        """As `remove`, and keep a result for each in the queue's log."""
        return wait_for(self._calls.outcomes.complete(ids, results, lease))

    def fail(
        self, ids: ItemIds, error: Errors, lease: bytes, *, delay: float | None = None
    ) -> list[FailOutcome]:
        """For each id, what becomes of it now that it failed; see `Lease.fail`."""
        return wait_for(self._calls.outcomes.fail(ids, error, lease, delay))

    def release(self, ids: ItemIds, lease: bytes) -> list[bool]:
        """For each id, whether the lease held it and others may have it now."""
        return wait_for(self._calls.outcomes.release(ids, lease))

    # --- what became of them ----------------------------------------------------------------------

    def receipt(self, batch: str) -> Receipt:
        """What became of a batch so far."""
        return wait_for(self._calls.reads.receipt(batch))

    def wait_batch(self, batch: str, timeout: float | None = None) -> Receipt:
        """Wait until every item of a batch is done or dead; its receipt as it is after `timeout`
        seconds."""
        return wait_for(self._calls.reads.wait_batch(batch, timeout))

    def read_results(
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
        """Up to `limit` results from `offset` on, or from where `reader` has acknowledged.

        With none there, wait up to `wait` seconds. Only those of a `batch`, and `before` an offset,
        if these are given. `without` names columns that are not wanted: "results", "keys",
        "batches" or "attributes". They are not sent, and are empty.
        """
        return wait_for(
            self._calls.reads.read_results(
                offset, reader, wait, limit=limit, batch=batch, before=before, without=without
            )
        )

    def read_columns(
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
        return wait_for(
            self._calls.reads.read_columns(
                offset, reader, wait, limit=limit, batch=batch, before=before, without=without
            )
        )

    def results(
        self, reader: str | None = None, offset: int = 0, *, wait: float = 0
    ) -> Iterator[Result]:
        """Every result from `offset` on, or from where `reader` has acknowledged.

        Ends when none came for `wait` seconds. What `reader` has been given is acknowledged page by
        page, when the next page is asked for: who stops within a page gets it again.
        """
        while (page := self.read_results(offset, reader=reader, wait=wait)).results:
            yield from page.results
            if reader is None:
                offset = page.next_offset
            else:
                self.ack_results(reader, page.next_offset)

    def ack_results(self, reader: str, offset: int) -> None:
        """`reader` needs nothing before `offset` any more. The first call makes it known: results
        go once all readers that are known have acknowledged them."""
        wait_for(self._calls.reads.ack_results(reader, offset))

    def drop_reader(self, reader: str) -> bool:
        """Forget a reader; False when there is none."""
        return wait_for(self._calls.reads.drop_reader(reader))

    def log_stats(self) -> LogStats:
        """The log of results in numbers, and how far each reader is."""
        return wait_for(self._calls.reads.log_stats())

    # --- operating --------------------------------------------------------------------------------

    def stats(self) -> Stats:
        """The queue in numbers."""
        return wait_for(self._calls.operates.stats())

    def peek(
        self, state: State = ItemState.READY, *, limit: int = 100, after: bytes = b""
    ) -> PeekPage:
        """Items that are ready, delayed, in progress or dead, without leasing them."""
        return wait_for(self._calls.operates.peek(state, limit=limit, after=after))

    def peek_all(self, state: State = ItemState.READY) -> Iterator[ItemInfo]:
        """All of them, page by page. Items that move meanwhile may be left out."""
        page = self.peek(state)
        yield from page.items
        while page.next:
            page = self.peek(state, after=page.next)
            yield from page.items

    def open_snapshot(self) -> Snapshot:
        """The queue as it is now, to be read while others go on; see `Snapshot`."""
        return Snapshot(self._calls, wait_for(self._calls.snapshots.open()))

    def snapshot(self, info: SnapshotInfo) -> Snapshot:
        """A snapshot that somebody has opened, perhaps in another process: its `info`."""
        return Snapshot(self._calls, info)

    def cancel(self, ids: ItemIds) -> list[bool]:
        """Delete items, whatever their state: for each, whether it was there."""
        return wait_for(self._calls.operates.cancel(ids))

    def purge(self, state: State) -> int:
        """Delete the items that are in a state now, and say how many.

        At most as many as there are when it begins, so that it ends though others add.
        """
        return wait_for(self._calls.operates.purge(state))

    def redrive(self, ids: ItemIds | None = None) -> int:
        """Make dead letters ready again, all that there are when none are named: how many."""
        return wait_for(self._calls.operates.redrive(ids))

    def pause(self, seconds: float | None = None) -> None:
        """Serve no poll for so long, or until `resume`. Adds and leases go on."""
        wait_for(self._calls.operates.pause(seconds))

    def resume(self) -> None:
        """Serve polls again."""
        wait_for(self._calls.operates.resume())
