"""Calls that wait for the same sync share a transaction, and each has its own answer."""

import asyncio
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest

from queueber.db.store.contract import Batch
from queueber.engine.integrity.check_store import check_store
from queueber.errors import (
    Internal,
    InvalidArgument,
    InvariantViolation,
    NotFound,
    ResourceExhausted,
    Unavailable,
)
from queueber.limits import MESSAGE_OVERHEAD_BYTES
from queueber.model import IdRuns, NewItems, PackedContents, Polled, QueueSettings
from queueber.service.session import QueueHandle
from queueber.service.shared_writes import SHARED_ITEMS_MAX
from tests.support.rig import refuse_write
from tests.support.service_rig import (
    HeldSync,
    ServiceRig,
    limits,
    new_session,
    run_on_service,
)
from tests.support.virtual_loop import turns

T = TypeVar("T")


class Held:
    """A rig whose next sync is under way, so that calls gather."""

    def __init__(self, rig: ServiceRig, sync: HeldSync) -> None:
        self.rig = rig
        self._sync = sync
        self._earlier: list[asyncio.Task[object]] = []

    async def begin(self) -> None:
        """Have a sync begin that does not end yet."""
        begun = self._sync.begun
        # It leaves the store as it was: the queue is empty.
        self._earlier.append(
            self.rig.begin(self.rig.service.results.ack_results(self.rig.queue, "r", 0))
        )
        await self._sync.wait_begun(begun + 1)

    async def synced(self, call: Awaitable[T]) -> T:
        """The answer to a call before the sync is held."""
        task, begun = self.rig.begin(call), self._sync.begun
        while not task.done():
            if self._sync.begun > begun:
                begun += 1
                self._sync.let()
            await asyncio.sleep(0)
        return task.result()

    def let_all(self) -> None:
        """Let the sync under way end, and all after it."""
        self._sync.let_all()

    def other(self) -> QueueHandle:
        """The queue as another session holds it."""
        return self.rig.service.queues.handle("default", new_session())

    @contextmanager
    def counting_writes(self) -> Iterator[list[int]]:
        written: list[int] = []
        store = self.rig.store
        write = store.write

        def counted(batch: Batch) -> None:
            written.append(len(batch))
            write(batch)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(store, "write", counted)
            yield written


def run_held(body, **changed: int) -> None:  # type: ignore[no-untyped-def]
    sync = HeldSync()

    async def main(rig: ServiceRig) -> None:
        with rig.loop.time_stands_still():
            try:
                await body(Held(rig, sync))
            finally:
                sync.let_all()
            assert check_store(rig.store) == []

    run_on_service(main, limits(**changed), sync=sync)


async def added(held: Held, *contents: bytes) -> list[bytes]:
    items = NewItems(contents)
    return list((await held.synced(held.rig.service.items.add(held.rig.queue, items))).ids)


async def leased(held: Held, count: int = 1) -> Polled:
    polls = held.rig.service.polls
    return await held.synced(polls.poll(held.rig.queue, count, lease_ms=60_000, wait_ms=0))


def test_adds_that_wait_for_one_sync_are_one_write_and_each_gets_its_ids() -> None:
    async def body(held: Held) -> None:
        await held.begin()
        with held.counting_writes() as written:
            calls = [
                held.rig.begin(
                    held.rig.service.items.add(held.other(), NewItems([b"%d" % n] * (n + 1)))
                )
                for n in range(3)
            ]
            await turns()
            assert written == []
            held.let_all()
            answers = [(await call).ids for call in calls]

        assert len(written) == 1
        assert [len(ids) for ids in answers] == [1, 2, 3]
        polled = await held.rig.poll_now(10)
        assert polled.ids == [item_id for ids in answers for item_id in ids]
        assert polled.contents == [b"0", b"1", b"1", b"2", b"2", b"2"]

    run_held(body)


def test_packed_adds_and_plain_ones_are_joined_in_the_order_in_which_they_came() -> None:
    columns = [
        PackedContents.pack([b"a", b""]),
        [b"b"],
        [b"c", b"d"],
        PackedContents.pack([b"-", b"e", b"f", b"g"])[1:],
        PackedContents.pack([b"h"]),
    ]

    async def body(held: Held) -> None:
        await held.begin()
        with held.counting_writes() as written:
            calls = [
                held.rig.begin(held.rig.service.items.add(held.other(), NewItems(contents)))
                for contents in columns
            ]
            await turns()
            held.let_all()
            answers = [(await call).ids for call in calls]

        assert len(written) == 1
        assert [len(ids) for ids in answers] == [2, 1, 2, 3, 1]
        polled = await held.rig.poll_now(10)
        assert polled.ids == [item_id for ids in answers for item_id in ids]
        assert polled.contents == [b"a", b"", b"b", b"c", b"d", b"e", b"f", b"g", b"h"]

    run_held(body)


def test_adds_of_many_items_get_their_ids_as_runs() -> None:
    async def body(held: Held) -> None:
        await held.begin()
        contents = [PackedContents.pack([b"x"] * 16), [b"y"] * 10]
        calls = [
            held.rig.begin(held.rig.service.items.add(held.other(), NewItems(each)))
            for each in contents
        ]
        await turns()
        held.let_all()
        first, second = [(await call).ids for call in calls]

        assert isinstance(first, IdRuns)
        assert isinstance(second, IdRuns)
        assert (len(first.runs), len(second.runs)) == (1, 1)
        assert (await held.rig.poll_now(100)).ids == [*first, *second]

    run_held(body)


def test_completes_of_whole_leases_are_one_write_and_each_has_its_own_answer() -> None:
    async def body(held: Held) -> None:
        ids = await added(held, b"a", b"b", b"c", b"d")
        one, two, three = [await leased(held, count) for count in (1, 2, 1)]
        await held.begin()
        items = held.rig.service.items
        with held.counting_writes() as written:
            calls = [
                held.rig.begin(items.complete_whole(held.other(), leases, counts, results))
                for leases, counts, results in (
                    ([one.lease_id, bytes(16)], [1, 1], PackedContents.pack([b"A", b"-"])),
                    ([two.lease_id], [2], [b"B", b"C"]),
                    ([three.lease_id], [1], PackedContents.pack([b"D"])),
                )
            ]
            await turns()
            held.let_all()
            answers = [await call for call in calls]

        assert len(written) == 1
        assert answers == [[True, False], [True], [True]]
        found = await held.rig.service.results.read_results(
            held.rig.queue, reader="", offset=0, limit=10, wait_ms=0
        )
        kept = [(each.id, each.result) for each in found.results]
        assert kept == list(zip(ids, [b"A", b"B", b"C", b"D"], strict=True))

    run_held(body)


def test_removes_of_one_item_by_two_callers_succeed_for_the_first() -> None:
    async def body(held: Held) -> None:
        await added(held, b"a", b"b")
        polled = await leased(held, 2)
        await held.begin()
        items = held.rig.service.items
        calls = [
            held.rig.begin(items.remove(held.other(), [item_id], [polled.lease_id]))
            for item_id in (polled.ids[0], polled.ids[0], polled.ids[1])
        ]
        held.let_all()

        assert [await call for call in calls] == [[True], [False], [True]]
        assert held.rig.service.queues.stats(held.rig.queue).leased == 0

    run_held(body)


def test_call_that_fails_fails_alone() -> None:
    async def body(held: Held) -> None:
        settings = QueueSettings(items_max=3, item_bytes_max=5)
        queues = held.rig.service.queues
        await held.synced(queues.configure_queue("default", settings, held.rig.session))
        await held.begin()
        items = held.rig.service.items
        calls = [
            held.rig.begin(items.add(held.other(), NewItems(contents)))
            for contents in ([b"a"], [b"too long"], [b"b"], [b"c", b"d"], [b"e"])
        ]
        held.let_all()
        answers = await asyncio.gather(*calls, return_exceptions=True)

        assert [type(each) for each in answers[1:4:2]] == [ResourceExhausted, ResourceExhausted]
        polled = await held.rig.poll_now(10)
        assert polled.contents == [b"a", b"b", b"e"]

    run_held(body)


def test_calls_that_the_store_refuses_are_all_refused_and_change_nothing() -> None:
    async def body(held: Held) -> None:
        await held.begin()
        calls = [
            held.rig.begin(held.rig.service.items.add(held.other(), NewItems([b"x"])))
            for _ in range(3)
        ]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(held.rig.store, "write", refuse_write)
            held.let_all()
            answers = await asyncio.gather(*calls, return_exceptions=True)

        assert [type(each) for each in answers] == [Unavailable] * 3
        assert held.rig.service.queues.stats(held.rig.queue).ready == 0

    run_held(body)


def test_calls_of_one_session_happen_in_the_order_in_which_they_came() -> None:
    """A lease that is extended and then removed was alive when it was extended."""

    async def body(held: Held) -> None:
        await added(held, b"a")
        polled = await leased(held)
        await held.begin()
        items, queue = held.rig.service.items, held.rig.queue
        leases = [polled.lease_id]
        calls = [
            held.rig.begin(items.extend(queue, leases, [60_000])),
            held.rig.begin(items.remove(queue, polled.ids, leases)),
            held.rig.begin(items.extend(queue, leases, [60_000])),
        ]
        held.let_all()

        assert [await call for call in calls] == [[True], [True], [False]]

    run_held(body)


def test_calls_of_several_kinds_and_sessions_are_one_write_a_kind() -> None:
    async def body(held: Held) -> None:
        await added(held, *[b"x"] * 6)
        leases = [await leased(held) for _ in range(3)]
        await held.begin()
        items = held.rig.service.items
        with held.counting_writes() as written:
            calls: list[asyncio.Future[Any]] = []
            for lease in leases:
                removing = items.remove(held.other(), lease.ids, [lease.lease_id])
                calls.append(held.rig.begin(removing))
                calls.append(held.rig.begin(items.add(held.other(), NewItems([b"y"]))))
                calls.append(held.rig.begin_poll(wait_ms=0, queue=held.other()))
                await turns()
            held.let_all()
            await asyncio.gather(*calls)

        assert len(written) == 3
        stats = held.rig.service.queues.stats(held.rig.queue)
        assert (stats.ready, stats.leased) == (3, 3)

    run_held(body)


def test_call_with_many_items_is_written_at_once() -> None:
    async def body(held: Held) -> None:
        await held.begin()
        many = NewItems([b"x"] * (SHARED_ITEMS_MAX + 1))
        call = held.rig.begin(held.rig.service.items.add(held.rig.queue, many))

        assert held.rig.service.queues.stats(held.rig.queue).ready == SHARED_ITEMS_MAX + 1
        assert not call.done()
        held.let_all()
        await call

    run_held(body)


def test_operation_on_a_queue_comes_after_what_was_gathered() -> None:
    async def body(held: Held) -> None:
        await held.begin()
        items, queue = held.rig.service.items, held.rig.queue
        adding = held.rig.begin(items.add(queue, NewItems([b"a"])))
        keyed = held.rig.begin(items.add(queue, NewItems([b"b"], keys=["k"])))
        held.let_all()

        assert list((await adding).ids) < list((await keyed).ids)

    run_held(body)


def test_queue_that_is_deleted_had_the_calls_before_that() -> None:
    async def body(held: Held) -> None:
        queues = held.rig.service.queues
        opening = queues.open_queue("other", held.rig.session, must_exist=False)
        other = await held.synced(opening)
        await held.begin()
        adding = held.rig.begin(held.rig.service.items.add(other, NewItems([b"a"])))
        polling = held.rig.begin_poll(queue=other)
        await turns()
        deleting = held.rig.begin(queues.delete_queue("other", held.rig.session))
        held.let_all()

        assert list((await adding).ids) == list((await polling).ids)
        assert len((await polling).ids) == 1
        assert await deleting
        with pytest.raises(NotFound, match="was deleted"):
            await held.rig.service.items.add(other, NewItems([b"a"]))

    run_held(body)


def test_call_on_a_queue_that_is_deleted_meanwhile_was_written_before() -> None:
    async def body(held: Held) -> None:
        queues = held.rig.service.queues
        opening = queues.open_queue("other", held.rig.session, must_exist=False)
        other = await held.synced(opening)
        await held.begin()
        adding = held.rig.begin(held.rig.service.items.add(other, NewItems([b"a"])))
        deleting = held.rig.begin(queues.delete_queue("other", held.rig.session))
        held.let_all()

        assert len((await adding).ids) == 1
        assert await deleting

    run_held(body)


def test_broken_promise_after_a_shared_write_stops_the_server_and_answers_nobody() -> None:
    sync = HeldSync()

    def broken(*_: object) -> None:
        raise InvariantViolation("I1")

    async def main(rig: ServiceRig) -> None:
        with rig.loop.time_stands_still():
            rig.service.shell.serve_waiting_polls = broken
            calls = [
                rig.begin(rig.service.items.add(rig.queue, NewItems([b"x"]))) for _ in range(2)
            ]
            for call in calls:
                with pytest.raises(Internal, match="I1"):
                    await call
            with pytest.raises(Internal, match="I1"):
                await rig.service.items.add(rig.queue, NewItems([b"x"]))
            assert [str(each) for each in sync.failures[:1]] == ["I1"]

    run_on_service(main, sync=sync)


# --- polls ----------------------------------------------------------------------------------------


async def polls(held: Held, count: int, *, wait_ms: int) -> "list[asyncio.Task[Polled]]":
    """Polls of as many sessions, gathered."""
    begun = [held.rig.begin_poll(wait_ms=wait_ms, queue=held.other()) for _ in range(count)]
    await turns()
    return begun


def test_polls_that_wait_for_one_sync_are_one_write_and_each_has_its_own_lease() -> None:
    async def body(held: Held) -> None:
        ids = await added(held, b"a", b"b", b"c")
        await held.begin()
        with held.counting_writes() as written:
            calls = await polls(held, 4, wait_ms=0)
            assert written == []
            held.let_all()
            answers = [await call for call in calls]

        assert len(written) == 1
        assert [answer.ids for answer in answers] == [[ids[0]], [ids[1]], [ids[2]], ()]
        assert len({answer.lease_id for answer in answers}) == 4

    run_held(body)


def test_poll_whose_caller_has_gone_before_it_is_served_takes_nothing() -> None:
    async def body(held: Held) -> None:
        ids = await added(held, b"a")
        await held.begin()
        first, second = await polls(held, 2, wait_ms=0)
        first.cancel()
        held.let_all()

        assert (await second).ids == ids

    run_held(body)


def test_poll_whose_caller_goes_while_its_lease_is_synced_gives_the_items_back() -> None:
    sync = HeldSync()

    async def main(rig: ServiceRig) -> None:
        with rig.loop.time_stands_still():
            sync.let()
            await rig.add(b"a", b"b")
            polling = rig.begin_poll(2, wait_ms=0)
            await sync.wait_begun(2)
            assert rig.service.queues.stats(rig.queue).leased == 2
            polling.cancel()
            await asyncio.wait([polling])
            sync.let_all()

            assert (await rig.poll_now(2)).contents == [b"a", b"b"]

    run_on_service(main, sync=sync)


def test_polls_whose_answers_together_are_too_long_all_get_theirs() -> None:
    async def body(held: Held) -> None:
        for _ in range(8):
            await added(held, b"x" * 1000)
        await held.begin()
        calls = await polls(held, 8, wait_ms=0)
        held.let_all()
        answers = [await call for call in calls]

        assert [len(answer.ids) for answer in answers] == [1] * 8

    # An answer has at most as many bytes as a message: two of these items fit, three do not.
    run_held(body, item_bytes_max=1000, message_bytes_max=MESSAGE_OVERHEAD_BYTES + 2500)


def test_waiting_polls_are_served_in_one_write() -> None:
    async def body(held: Held) -> None:
        waiting = await polls(held, 5, wait_ms=60_000)
        await held.begin()
        with held.counting_writes() as written:
            adding = held.rig.begin(
                held.rig.service.items.add(held.rig.queue, NewItems([b"x"] * 5))
            )
            held.let_all()
            answers = [await call for call in waiting]

        assert [answer.ids for answer in answers] == [[each] for each in (await adding).ids]
        assert len(written) == 2

    run_held(body)


def test_bad_argument_is_refused_at_once_and_disturbs_nobody() -> None:
    async def body(held: Held) -> None:
        await held.begin()
        adding = held.rig.begin(held.rig.service.items.add(held.other(), NewItems([b"a"])))
        with pytest.raises(InvalidArgument):
            held.rig.service.items.remove(held.other(), [b"1" * 16], [b"short"])
        held.let_all()

        assert len((await adding).ids) == 1

    run_held(body)
