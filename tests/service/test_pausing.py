"""Pause: no poll is served, all else goes on; and who waits is served when it is over."""

import asyncio

import pytest

from queueber.db.records.keys import NEVER_MS
from queueber.engine.integrity.check_store import check_store
from queueber.errors import Unavailable
from queueber.limits import STORE_RETRY_MS
from queueber.model import NOTHING_POLLED, QueueSettings
from tests.support.dumps import dump
from tests.support.rig import refuse_write
from tests.support.service_rig import ServiceRig, limits, on_service
from tests.support.virtual_loop import turns


def paused_until_ms(rig: ServiceRig) -> int:
    return rig.service.queues.stats(rig.queue).paused_until_ms


@on_service()
async def test_paused_queue_gives_out_nothing(rig: ServiceRig) -> None:
    await rig.add(b"a", b"b")
    await rig.service.queues.pause(rig.queue, 0)

    assert await rig.poll_now() == NOTHING_POLLED
    assert (
        await rig.service.polls.poll_many(rig.queue, [1, 1], lease_ms=1000) == [NOTHING_POLLED] * 2
    )
    assert await rig.begin_poll(wait_ms=500) == NOTHING_POLLED

    assert rig.service.queues.stats(rig.queue).ready == 2
    assert paused_until_ms(rig) == NEVER_MS


@on_service()
async def test_paused_queue_takes_adds_and_outcomes(rig: ServiceRig) -> None:
    await rig.add(*[b"x"] * 4)
    done, removed, failed, released = [await rig.poll_now() for _ in range(4)]
    await rig.service.queues.pause(rig.queue, 0)

    await rig.add(b"new")
    assert await rig.complete(done) == [True]
    assert await rig.service.items.remove(rig.queue, removed.ids, [removed.lease_id]) == [True]
    await rig.fail(failed, 0)
    assert await rig.service.items.release(rig.queue, released.ids, [released.lease_id]) == [True]

    assert rig.service.queues.stats(rig.queue).ready == 3
    assert await rig.poll_now() == NOTHING_POLLED


@on_service()
async def test_pause_of_one_queue_does_not_concern_another(rig: ServiceRig) -> None:
    other = await rig.service.queues.open_queue("other", rig.session, must_exist=False)
    await rig.service.queues.pause(other, 0)
    task = await rig.waiting_poll()

    ids = await rig.add(b"a")

    assert (await task).ids == ids


# --- who waits ------------------------------------------------------------------------------------


@on_service()
async def test_polls_that_wait_are_served_at_resume_in_order_and_at_once(rig: ServiceRig) -> None:
    before = await rig.waiting_poll()
    await rig.service.queues.pause(rig.queue, 0)
    ids = await rig.add(b"a", b"b")
    during = await rig.waiting_poll()
    assert not before.done()
    before_ms = rig.clock.now_ms()

    await rig.service.queues.resume(rig.queue)

    assert [list((await task).ids) for task in (before, during)] == [ids[:1], ids[1:]]
    assert rig.clock.now_ms() == before_ms
    assert paused_until_ms(rig) == 0


@on_service()
async def test_polls_that_wait_are_served_when_the_time_is_over(rig: ServiceRig) -> None:
    async with rig.sweeper():
        before = await rig.waiting_poll()
        before_ms = rig.clock.now_ms()
        await rig.service.queues.pause(rig.queue, 5000)
        ids = await rig.add(b"a", b"b")
        during = await rig.waiting_poll()

        assert [list((await task).ids) for task in (before, during)] == [ids[:1], ids[1:]]

        assert rig.clock.now_ms() == before_ms + 5000
        assert paused_until_ms(rig) == 0
    assert check_store(rig.store) == []


@on_service()
async def test_poll_that_comes_when_the_time_is_over_is_served_before_the_sweeper_looks(
    rig: ServiceRig,
) -> None:
    ids = await rig.add(b"a")
    await rig.service.queues.pause(rig.queue, 5000)
    rig.clock.advance(4999)
    assert await rig.poll_now() == NOTHING_POLLED
    rig.clock.advance(1)

    assert (await rig.poll_now()).ids == ids


@on_service()
async def test_poll_that_waited_through_a_pause_goes_before_one_that_comes_at_its_end(
    rig: ServiceRig,
) -> None:
    ids = await rig.add(b"a")
    await rig.service.queues.pause(rig.queue, 5000)
    task = await rig.waiting_poll()
    rig.clock.advance(5000)

    assert await rig.poll_now() == NOTHING_POLLED
    assert (await task).ids == ids


@on_service()
async def test_poll_whose_time_is_up_before_the_pause_is_over_gets_nothing(
    rig: ServiceRig,
) -> None:
    async with rig.sweeper():
        await rig.add(b"a")
        await rig.service.queues.pause(rig.queue, 5000)

        assert await rig.begin_poll(wait_ms=4999) == NOTHING_POLLED


@on_service()
async def test_items_that_become_ready_in_a_pause_wait_for_its_end(rig: ServiceRig) -> None:
    """A delay and a lease that end, through the sweeper, serve nobody either."""
    async with rig.sweeper():
        ids = await rig.add(b"leased")
        await rig.poll_now(lease_ms=100)
        ids += await rig.add(b"delayed", delay_ms=200)
        await rig.service.queues.pause(rig.queue, 5000)
        tasks = [await rig.waiting_poll(), await rig.waiting_poll()]
        before_ms = rig.clock.now_ms()

        assert [list((await task).ids) for task in tasks] == [ids[:1], ids[1:]]
        assert rig.clock.now_ms() == before_ms + 5000


@on_service()
async def test_poll_that_is_not_answered_before_a_pause_gives_its_items_back_until_the_end(
    rig: ServiceRig,
) -> None:
    gone, waiting = await rig.waiting_poll(), await rig.waiting_poll()
    added = asyncio.ensure_future(rig.add(b"a"))
    await asyncio.sleep(0)
    paused = rig.service.queues.pause(rig.queue, 0)
    gone.cancel()
    await paused
    ids = await added
    await turns()

    assert gone.cancelled()
    assert not waiting.done()
    stats = rig.service.queues.stats(rig.queue)
    assert (stats.ready, stats.leased, stats.failed_total) == (1, 0, 0)
    await rig.service.queues.resume(rig.queue)
    assert (await waiting).ids == ids


# --- pause upon pause -----------------------------------------------------------------------------


@on_service(limits(poll_wait_ms_max=100_000))
async def test_pause_again_replaces_the_time_whether_later_or_earlier(rig: ServiceRig) -> None:
    async with rig.sweeper():
        await rig.add(b"a")
        for times_ms, ends_in_ms in (((1000, 5000), 5000), ((5000, 1000), 1000), ((0, 70), 70)):
            before_ms = rig.clock.now_ms()
            for for_ms in times_ms:
                await rig.service.queues.pause(rig.queue, for_ms)

            polled = await rig.begin_poll(wait_ms=90_000)

            assert rig.clock.now_ms() == before_ms + ends_in_ms
            await rig.service.items.release(rig.queue, polled.ids, [polled.lease_id])


@on_service()
async def test_resume_of_a_queue_that_is_not_paused_writes_nothing(rig: ServiceRig) -> None:
    before = dump(rig.store)

    await rig.service.queues.resume(rig.queue)

    assert dump(rig.store) == before


@on_service()
async def test_configure_queue_leaves_it_paused(rig: ServiceRig) -> None:
    await rig.add(b"a")
    await rig.service.queues.pause(rig.queue, 0)

    await rig.service.queues.configure_queue("default", QueueSettings(items_max=5), rig.session)

    assert await rig.poll_now() == NOTHING_POLLED
    await rig.service.queues.resume(rig.queue)
    assert (await rig.poll_now()).ids
    assert rig.queue.state.settings == QueueSettings(items_max=5)


# --- a store that refuses -------------------------------------------------------------------------


@on_service()
async def test_pause_and_resume_that_the_store_refuses_change_nothing(rig: ServiceRig) -> None:
    await rig.add(b"a")
    with pytest.MonkeyPatch.context() as fault:
        fault.setattr(rig.store, "write", refuse_write)
        with pytest.raises(Unavailable):
            rig.service.queues.pause(rig.queue, 0)
    polled = await rig.poll_now()
    assert polled.ids
    await rig.service.items.release(rig.queue, polled.ids, [polled.lease_id])

    await rig.service.queues.pause(rig.queue, 0)
    with pytest.MonkeyPatch.context() as fault:
        fault.setattr(rig.store, "write", refuse_write)
        with pytest.raises(Unavailable):
            rig.service.queues.resume(rig.queue)
    assert await rig.poll_now() == NOTHING_POLLED


@on_service()
async def test_pause_whose_end_the_store_refuses_ends_a_little_later(rig: ServiceRig) -> None:
    await rig.add(b"a")
    await rig.service.queues.pause(rig.queue, 1000)
    task = await rig.waiting_poll()
    rig.clock.advance(1000)
    with pytest.MonkeyPatch.context() as fault:
        fault.setattr(rig.store, "write", refuse_write)
        with pytest.raises(Unavailable):
            rig.service.sweep()

    assert rig.service.next_due_in_ms() == STORE_RETRY_MS
    rig.clock.advance(STORE_RETRY_MS)
    assert rig.service.sweep()
    assert (await task).ids
