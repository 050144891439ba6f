"""Callers that hang up: what they had been given goes back, and on to whoever is next."""

import asyncio

import pytest

from queueber.engine.integrity.check_store import check_store
from queueber.errors import Unavailable
from queueber.model import NOTHING_POLLED, ItemState, NewItems
from tests.support.dumps import dump
from tests.support.rig import refuse_write
from tests.support.service_rig import HeldSync, ServiceRig, on_service, run_on_service
from tests.support.virtual_loop import turns


def assert_all_ready(rig: ServiceRig, count: int) -> None:
    stats = rig.service.queues.stats(rig.queue)
    assert (stats.ready, stats.leased, stats.leases) == (count, 0, 0)
    # Nobody had them, so nobody failed: no attempt is charged, and no group is made smaller.
    assert (stats.expired_total, stats.failed_total) == (0, 0)
    items, _ = rig.service.items.peek(rig.queue, ItemState.READY, b"", 0)
    assert [(item.attempts, item.group_max) for item in items] == [(0, 0)] * count
    assert check_store(rig.store) == []


@on_service()
async def test_poll_cancelled_while_it_waits_takes_nothing(rig: ServiceRig) -> None:
    task = await rig.waiting_poll()
    before = dump(rig.store)

    task.cancel()
    await asyncio.wait([task])

    assert task.cancelled()
    assert dump(rig.store) == before
    assert rig.service.queues.stats(rig.queue).waiting_polls == 0
    await rig.add(b"a")
    assert_all_ready(rig, 1)


@on_service()
async def test_poll_cancelled_in_the_turn_of_the_add_leaves_the_item_to_the_next(
    rig: ServiceRig,
) -> None:
    """Cancelled before it is served: it stands in the row but takes nothing."""
    gone, next_one = await rig.waiting_poll(), await rig.waiting_poll()

    gone.cancel()
    ids = await rig.add(b"a")

    assert (await next_one).ids == ids
    assert gone.cancelled()
    assert rig.service.queues.stats(rig.queue).expired_total == 0


@on_service()
async def test_poll_cancelled_in_the_turn_in_which_it_was_served_gives_the_item_back(
    rig: ServiceRig,
) -> None:
    task = await rig.waiting_poll()

    added = rig.service.items.add(rig.queue, NewItems([b"a", b"b"]))
    task.cancel()
    await added
    await asyncio.wait([task])

    assert task.cancelled()
    assert_all_ready(rig, 1 + 1)


@on_service()
async def test_poll_cancelled_in_the_turn_in_which_it_was_served_passes_the_item_on(
    rig: ServiceRig,
) -> None:
    gone, next_one, last = [await rig.waiting_poll(wait_ms=500) for _ in range(3)]

    added = rig.service.items.add(rig.queue, NewItems([b"a"]))
    gone.cancel()
    ids = (await added).ids

    assert (await next_one).ids == ids
    assert gone.cancelled()
    assert await last == NOTHING_POLLED
    assert check_store(rig.store) == []


@on_service()
async def test_poll_cancelled_before_its_first_turn_takes_nothing(rig: ServiceRig) -> None:
    await rig.add(b"a")

    polled = rig.service.polls.poll(rig.queue, 1, lease_ms=1000, wait_ms=0)
    polled.close()

    assert_all_ready(rig, 1)


@on_service()
async def test_poll_cancelled_as_its_time_is_up_changes_nothing(rig: ServiceRig) -> None:
    task = await rig.waiting_poll(wait_ms=100)
    before = dump(rig.store)

    rig.loop.call_later(0.1, task.cancel)
    await asyncio.wait([task])

    assert dump(rig.store) == before
    assert rig.service.queues.stats(rig.queue).waiting_polls == 0


@on_service()
async def test_poll_cancelled_when_its_queue_was_just_deleted_does_no_harm(
    rig: ServiceRig,
) -> None:
    doomed = await rig.service.queues.open_queue("doomed", rig.session, must_exist=False)
    task = await rig.waiting_poll(queue=doomed)

    added = rig.service.items.add(doomed, NewItems([b"a"]))
    deleted = rig.service.queues.delete_queue("doomed", rig.session)
    task.cancel()
    await added
    assert await deleted
    await asyncio.wait([task])

    assert check_store(rig.store) == []


@on_service()
async def test_poll_cancelled_when_the_store_refuses_to_take_back_lets_the_lease_run_out(
    rig: ServiceRig,
) -> None:
    """Nothing is lost: the item is with a lease that nobody knows, and that expires."""
    task = await rig.waiting_poll(lease_ms=5000)
    added = rig.service.items.add(rig.queue, NewItems([b"a"]))
    task.cancel()
    with pytest.MonkeyPatch.context() as fault:
        fault.setattr(rig.store, "write", refuse_write)
        ids = (await added).ids
        await asyncio.wait([task])

    assert check_store(rig.store) == []
    assert rig.service.queues.stats(rig.queue).leased == 1
    rig.clock.advance(5000)
    assert (await rig.poll_now()).ids == ids
    assert task.cancelled() or isinstance(task.exception(), Unavailable)


# --- between the write and the disk ---------------------------------------------------------------


def test_poll_cancelled_while_it_waits_for_the_commit_is_taken_back() -> None:
    sync = HeldSync()

    async def body(rig: ServiceRig) -> None:
        with rig.loop.time_stands_still():
            adding = rig.begin(rig.service.items.add(rig.queue, NewItems([b"a", b"b"])))
            sync.let()
            await adding
            task = rig.begin_poll(2)
            await sync.wait_begun(2)

            task.cancel()
            await asyncio.wait([task])

            assert task.cancelled()
            assert_all_ready(rig, 2)

    run_on_service(body, sync=sync)


def test_poll_many_cancelled_while_it_waits_for_the_commit_is_taken_back() -> None:
    sync = HeldSync()

    async def body(rig: ServiceRig) -> None:
        with rig.loop.time_stands_still():
            adding = rig.begin(rig.service.items.add(rig.queue, NewItems([b"a", b"b", b"c"])))
            sync.let()
            await adding
            task = rig.begin(rig.service.polls.poll_many(rig.queue, [1, 1, 1], lease_ms=1000))
            await sync.wait_begun(2)
            assert rig.service.queues.stats(rig.queue).leases == 3

            task.cancel()
            await asyncio.wait([task])

            assert_all_ready(rig, 3)

    run_on_service(body, sync=sync)


def test_waiting_poll_cancelled_while_it_waits_for_the_commit_passes_the_item_on() -> None:
    sync = HeldSync()

    async def body(rig: ServiceRig) -> None:
        gone, next_one = await rig.waiting_poll(), await rig.waiting_poll()
        with rig.loop.time_stands_still():
            adding = rig.begin(rig.service.items.add(rig.queue, NewItems([b"a"])))
            await turns()
            await sync.wait_begun(1)

            gone.cancel()
            await asyncio.wait([gone])
            assert not next_one.done(), "its lease is not on the disk yet"
            sync.let_all()

            assert (await next_one).ids == (await adding).ids
            assert gone.cancelled()
            assert check_store(rig.store) == []

    run_on_service(body, sync=sync)


def test_poll_cancelled_while_it_waits_for_the_commit_of_a_queue_that_went_does_no_harm() -> None:
    sync = HeldSync()

    async def body(rig: ServiceRig) -> None:
        with rig.loop.time_stands_still():
            finding = rig.begin(
                rig.service.queues.open_queue("doomed", rig.session, must_exist=False)
            )
            sync.let()
            doomed = await finding
            adding = rig.begin(rig.service.items.add(doomed, NewItems([b"a"])))
            sync.let()
            await adding
            task = rig.begin_poll(queue=doomed)
            await sync.wait_begun(3)
            deleting = rig.begin(rig.service.queues.delete_queue("doomed", rig.session))
            await turns()

            task.cancel()
            await asyncio.wait([task])
            sync.let_all()

            assert task.cancelled()
            assert await deleting
            assert check_store(rig.store) == []

    run_on_service(body, sync=sync)
