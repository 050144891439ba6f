# Generated from async_queue.py by scripts/generate_blocking.py; edit that file instead.
"""A queue: add items, lease them, read their results, operate it; and its producers."""

from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from datetime import datetime
from typing import Unpack

from queueber import model
from queueber.client.api.lease import Lease
from queueber.client.api.load import Load
from queueber.client.api.snapshot import Snapshot
from queueber.client.arguments import values
from queueber.client.arguments.callbacks import to_callback
from queueber.client.arguments.item_options import OwnOptions, to_own_options
from queueber.client.arguments.new_items import AddOptions, to_new_items
from queueber.client.arguments.values import Contents, ItemIds, Seconds
from queueber.client.calls.adds import AddedIds, NumberedAdds
from queueber.client.calls.items import LeasePage, PeekPage
from queueber.client.calls.queue_calls import QueueCalls
from queueber.client.calls.results import BatchPage, WaitingReadOptions
from queueber.client.transport.futures import wait_for
from queueber.limits import PRIORITY_DEFAULT
from queueber.wire.results import results_of


class Queue:
    """A queue of a server; `Client.queue` makes one.

    Ids are bytes, hexadecimal text or objects with an `id`, such as an `Item`. Durations are
    seconds or `timedelta`s.
    """

    def __init__(self, calls: QueueCalls) -> None:
        self._calls = calls

    def __repr__(self) -> str:
        return f"<Queue {self.name!r} at {self._calls.address}>"

    @property
    def name(self) -> str:
        return self._calls.name

    # --- items ------------------------------------------------------------------------------------

    def add(self, contents: Contents, **options: Unpack[AddOptions]) -> AddedIds:
        """Store items, all or none, and return their ids in order.

        `delay` is how long they stay hidden, `priority` is from 0 to 9 (5), higher first: one for
        all items, or one for each. `at` in place of a delay is the moment at which all of them
        become ready, a datetime with a time zone, by the clock of this machine. An item whose `key`
        was used within the queue's dedup window is not stored again: its id is that of the first,
        and `duplicates` of the returned ids says so. `attributes` is a mapping of text that goes
        with each item, or a list of them. `batch` names what all of them belong to, for `receipt`
        and `wait_for_batch`. `attempts`, `backoff` and `timeout` are the items' own, in place
        of what the queue and the worker say: failures that make one a dead letter (0: no limit),
        its delays after each failure, of which the last one repeats, and how long a handler may
        take. One that `expires`, after some seconds or at a moment, dies if nobody has leased it
        by then. `origin` says which load, partition and row they come from; the load must be under
        way.

        With `after` they become ready only once those items of the queue are done, with
        `after_batch` once that batch is complete; a delay begins then. If one that they wait for
        dies or is cancelled, they are dead letters, too. An item that the queue no longer holds
        counts as done.
        """
        return wait_for(self._calls.adds.add(contents, **options))

    def add_soon(self, contents: Contents, **options: Unpack[AddOptions]) -> "Future[AddedIds]":
        """As `add`, but returns at once: several calls may be under way, and are kept in order."""
        return self._calls.adds.add(contents, **options)

    def producer(self, id: str, epoch: int) -> "Producer":
        """A producer, whose adds are safe to repeat.

        When two use the same `id`, the one with the greater `epoch` shuts out the other.
        """
        return Producer(self._calls.numbered_adds(id, epoch))

    def poll(
        self,
        count: int = 1,
        *,
        lease: Seconds | None = None,
        wait: Seconds = 0,
        release_on_disconnect: bool = False,
    ) -> Lease:
        """Lease up to `count` items for `lease` seconds, or as long as the queue's settings say.

        When none is ready, wait up to `wait` seconds. A lease without items is false. With
        `release_on_disconnect` the lease also ends when the client's connection does.
        """
        polls = self._calls.polls
        future = polls.poll(count, lease, wait, release_on_disconnect=release_on_disconnect)
        try:
            return Lease(self._calls, wait_for(future))
        except BaseException:
            polls.give_back(future)
            raise

    # --- loads ------------------------------------------------------------------------------------

    def load(
        self,
        name: str,
        *,
        epoch: int = 0,
        batch: str | None = None,
        timeout: Seconds | None = None,
        must_exist: bool = False,
    ) -> Load:
        """Begin the load of that name, or join it: many items that become visible at once.

        All items belong to `batch`. What was committed in an `epoch` is not loaded again in it. The
        server drops the load when nobody calls for `timeout` seconds. One that `must_exist` is not
        begun: if it is neither under way nor committed, the call raises `NotFound`.
        """
        calls, ref = self._calls.loads, values.to_load_ref(name, epoch)
        begun = calls.begin(ref, batch=batch, timeout=timeout, must_exist=must_exist)
        return Load(calls, wait_for(begun))

    def abort_load(self, name: str, *, epoch: int = 0) -> bool:
        """Drop everything that was staged; False when there is no such load, or it is committed."""
        return wait_for(self._calls.loads.abort(values.to_load_ref(name, epoch)))

    def loads(self) -> list[model.LoadInfo]:
        """The loads that are under way."""
        return wait_for(self._calls.loads.all())

    # --- leased items, with the id of the lease ---------------------------------------------------

    def extend(self, seconds: Seconds, *, lease: values.Id) -> bool:
        """Let the lease expire `seconds` from now; False when it has ended already."""
        return wait_for(self._calls.leases.extend(seconds, lease))

    def remove(self, ids: ItemIds, *, lease: values.Id) -> list[bool]:
        """For each id, whether the lease held the item and it is now deleted."""
        return wait_for(self._calls.leases.remove(ids, lease))

    def complete(
        self, ids: ItemIds, results: values.CompletedResults, *, lease: values.Id
    ) -> list[bool]:
        """As `remove`, and keep a result for each item."""
        return wait_for(self._calls.leases.complete(ids, results, lease))

    def fail(
        self, ids: ItemIds, error: values.Errors, *, lease: values.Id, delay: Seconds | None = None
    ) -> list[model.FailOutcome]:
        """For each id, what becomes of the item now that it failed; see `Lease.fail`."""
        return wait_for(self._calls.leases.fail(ids, error, lease, delay))

    def release(self, ids: ItemIds, *, lease: values.Id) -> list[bool]:
        """For each id, whether the lease held the item and others may lease it now."""
        return wait_for(self._calls.leases.release(ids, lease))

    # --- receipts and results ---------------------------------------------------------------------

    def receipt(self, batch: str) -> model.Receipt:
        """How many items of a batch are done, dead and live."""
        return wait_for(self._calls.results.receipt(batch))

    def wait_for_batch(
        self,
        batch: str,
        timeout: Seconds | None = None,
    ) -> model.Receipt:
        """Wait until every item of a batch is done or dead, and return the receipt; after `timeout`
        seconds return it as it is."""
        return wait_for(self._calls.results.wait_for_batch(batch, timeout))

    def when_complete(
        self,
        batch: str,
        contents: bytes,
        *,
        to: str | None = None,
        key: str | None = None,
        priority: int = PRIORITY_DEFAULT,
        attributes: Mapping[str, str] | None = None,
        **own: Unpack[OwnOptions],
    ) -> model.CallbackInfo:
        """Have the server add an item once every item of a batch is done or dead; at once if it is.

        Call it after everything was added to the batch. The item is added exactly once, to this
        queue or the one that `to` names, and `callback_receipt(item.attributes)` is the receipt of
        the batch at that moment. A call that is repeated changes nothing; until the item was added,
        another one takes its place. `attempts` and the like are as in `add`, `expires` in seconds.
        """
        given = contents, key, priority, attributes, to_own_options(**own)
        callback = to_callback(self.name if to is None else to, *given)
        return wait_for(self._calls.callbacks.put(batch, callback))

    def callback(self, batch: str) -> model.CallbackInfo:
        """The callback of a batch, and whether its item was added; `NotFound` if it has none."""
        return wait_for(self._calls.callbacks.describe(batch))

    def read_results(self, offset: int = 0, **options: Unpack[WaitingReadOptions]) -> model.Results:
        """Up to `limit` (1000) results from `offset` on, or from where `reader` has acknowledged.

        When there are none, wait up to `wait` seconds. Only those of a `batch`, and `before` an
        offset, if these are given. `without` names columns that the server leaves out: "results",
        "keys", "batches" or "attributes". These are empty.
        """
        return results_of(self.read_columns(offset, **options))

    def read_columns(
        self, offset: int = 0, **options: Unpack[WaitingReadOptions]
    ) -> model.ResultColumns:
        """As `read_results`, with a list for each column instead of an object for each result."""
        return wait_for(self._calls.results.read(offset, **options))

    def results(
        self, reader: str | None = None, offset: int = 0, *, wait: Seconds = 0
    ) -> Iterator[model.Result]:
        """Every result from `offset` on, or from where `reader` has acknowledged.

        Ends when no result came for `wait` seconds. Results are acknowledged for `reader` page by
        page, when the next page is read: a program that stops within a page gets it again.
        """
        while (page := self.read_results(offset, reader=reader, wait=wait)).results:
            yield from page.results
            if reader is None:
                offset = page.next_offset
            else:
                self.ack_results(reader, page.next_offset)

    def ack_results(self, reader: str, offset: int) -> None:
        """`reader` has read everything before `offset`. The first call registers the reader:
        results are deleted once all registered readers have acknowledged them."""
        wait_for(self._calls.results.ack_results(reader, offset))

    def drop_reader(self, reader: str) -> bool:
        """Forget a reader; False when there is none."""
        return wait_for(self._calls.results.drop_reader(reader))

    def results_stats(self) -> model.LogStats:
        """The offsets and bytes of the results that are kept, and how far each reader is."""
        return wait_for(self._calls.results.stats())

    # --- operating --------------------------------------------------------------------------------

    def stats(self) -> model.Stats:
        """The queue's settings and numbers."""
        return wait_for(self._calls.items.stats())

    def peek(
        self,
        state: values.State = "ready",
        *,
        limit: int = 100,
        after: bytes = b"",
        where: str = "",
    ) -> PeekPage:
        """Items that are ready, delayed, leased or dead, without leasing them.

        `where` is a condition as in SQL, such as "item.error LIKE '%timeout%' AND attributes.region
        = 'eu'". The server then looks at up to 1,000 items a call, and a page may have none of them
        although it has a `next`: `peek_all` goes through all.
        """
        peeked = self._calls.items.peek(state, limit=limit, after=after, where=where)
        return wait_for(peeked)

    def peek_all(
        self, state: values.State = "ready", *, where: str = ""
    ) -> Iterator[model.ItemInfo]:
        """All of them, page by page. Items that change state meanwhile may be left out."""
        after = b""
        while True:
            page = self.peek(state, after=after, where=where)
            yield from page.items
            if not (after := page.next):
                return

    def find(
        self, id: values.Id | None = None, *, key: str | None = None
    ) -> model.FoundItem | None:
        """An item in whatever state, with each attempt that failed, and who holds it or its result.

        By its id; or the last one with a key, for the dedup window from its add on, and then while
        it is in the queue. None if it is not there and has no result: it was removed, cancelled or
        purged, or its result was deleted. `OutOfRange` if so many results came since its add that
        it was not looked for among all.
        """
        return wait_for(self._calls.finds.find(id, key))

    def leases(self, *, limit: int = 100, after: values.Id = b"") -> LeasePage:
        """Leases, oldest first: who polled, how many items each still holds, when it expires.

        The server knows who polled, of at least 100,000 leases; after a restart, who extended one.
        """
        return wait_for(self._calls.items.list_leases(limit, after))

    def batches(self, *, limit: int = 100, before: int = 0) -> BatchPage:
        """The batches that the queue remembers with their receipts, newest first."""
        return wait_for(self._calls.results.list_batches(limit, before))

    def forget_batch(self, batch: str) -> bool:
        """Forget a complete batch now, with its receipt; False if the queue knows none of that
        name. `FailedPrecondition` while it has live items."""
        return wait_for(self._calls.results.forget_batch(batch))

    def forget_batches(self, *, unchanged_for: Seconds) -> int:
        """Forget all complete batches that did not change for so long; returns how many."""
        return wait_for(self._calls.results.forget_batches(unchanged_for))

    def open_snapshot(self) -> Snapshot:
        """The queue as it is now, to be read while others go on; see `Snapshot`."""
        return Snapshot(self._calls, wait_for(self._calls.snapshots.open()))

    def snapshot(self, info: model.SnapshotInfo) -> Snapshot:
        """The snapshot with that `info`, which another process may have opened."""
        return Snapshot(self._calls, info)

    def cancel(self, ids: ItemIds) -> list[bool]:
        """Delete items, whatever their state: for each, whether it was there."""
        return wait_for(self._calls.items.cancel(ids))

    def cancel_key(self, key: str) -> bool:
        """Delete the item that was added last with a key, as `cancel`; False if it is gone, or the
        queue has no dedup window."""
        return wait_for(self._calls.items.cancel_key(key))

    def cancel_batch(self, batch: str) -> int:
        """Delete all items of a batch, whatever their state; returns how many. It goes through the
        whole queue while others go on: what is added to the batch meanwhile may stay."""
        return wait_for(self._calls.items.cancel_batch(batch))

    def reschedule(
        self, ids: ItemIds, *, at: datetime | None = None, delay: Seconds | None = None
    ) -> list[bool]:
        """Have items that are ready or delayed become ready `at` a time, or after a `delay`; 0:
        now. Whether each does: not if it waits for others, or would expire by then."""
        return wait_for(self._calls.items.reschedule(ids, at, delay))

    def purge(self, state: values.State) -> int:
        """Delete the items that are in a state now; returns how many: at most as many as there are
        when it begins, so that it ends even if others add."""
        return wait_for(self._calls.items.purge(state))

    def redrive(self, ids: ItemIds | None = None) -> int:
        """Make dead letters ready again, all of them when none are named; returns how many."""
        return wait_for(self._calls.items.redrive(ids))

    def pause(self, seconds: Seconds | None = None) -> None:
        """Answer polls with nothing for so long, or until `resume`. Adds and leases go on."""
        wait_for(self._calls.items.pause(seconds))

    def resume(self) -> None:
        """Answer polls again."""
        wait_for(self._calls.items.resume())


class Producer:
    """Adds that are stored once, however often they are sent.

    Calls are numbered from 1 and stored in order. After a lost connection the client sends one
    again, and the server knows it; so it does if the program starts again and makes the same calls.
    """

    def __init__(self, adds: NumberedAdds) -> None:
        self._adds = adds
        self.id = adds.producer_id
        self.epoch = adds.epoch

    def __repr__(self) -> str:
        return f"<Producer {self.id!r} epoch={self.epoch} sequence={self.sequence}>"

    @property
    def sequence(self) -> int:
        """The number of the next call; after a call failed, the number of that call."""
        return self._adds.next_sequence

    def add(
        self,
        contents: Contents,
        *,
        sequence: int | None = None,
        **options: Unpack[AddOptions],
    ) -> AddedIds:
        """As `Queue.add`. `sequence` is the number of the call, if it is not the next one.

        `Aborted` when another producer uses the id with a greater epoch, a number was left out, the
        call has other contents than the one stored under its number, or a call before it failed:
        repeat that one with its `sequence`. Cancelling the caller does not keep it from being sent.
        """
        return wait_for(self.add_soon(contents, sequence=sequence, **options))

    def add_soon(
        self,
        contents: Contents,
        *,
        sequence: int | None = None,
        **options: Unpack[AddOptions],
    ) -> "Future[AddedIds]":
        """As `add`, but returns at once: several calls may be under way, and are kept in order."""
        return self._adds.submit(to_new_items(contents, **options), sequence)
