"""Polls that find nothing wait: until there is something, until their time is up, in order."""

import asyncio

import pytest

from queueber.errors import ResourceExhausted
from queueber.model import NOTHING_POLLED, NewItems
from tests.support.dumps import dump
from tests.support.service_rig import ServiceRig, limits, on_service
from tests.support.virtual_loop import turns


@on_service()
async def test_poll_with_items_ready_answers_at_once(rig: ServiceRig) -> None:
    ids = await rig.add(b"a", b"b")
    before_ms = rig.clock.now_ms()

    polled = await rig.begin_poll(5)

    assert polled.ids == ids
    assert polled.contents == [b"a", b"b"]
    assert rig.clock.now_ms() == before_ms


@on_service()
async def test_poll_with_nothing_ready_wakes_on_add_without_time_passing(rig: ServiceRig) -> None:
    task = await rig.waiting_poll(5)
    before_ms = rig.clock.now_ms()

    ids = await rig.add(b"a", b"b")

    assert (await task).ids == ids
    assert rig.clock.now_ms() == before_ms
    assert rig.service.queues.stats(rig.queue).leased == 2


@on_service()
async def test_poll_that_waits_in_vain_answers_nothing_when_its_time_is_up(
    rig: ServiceRig,
) -> None:
    before, before_ms = dump(rig.store), rig.clock.now_ms()

    polled = await rig.begin_poll(wait_ms=2500)

    assert polled == NOTHING_POLLED
    assert rig.clock.now_ms() == before_ms + 2500
    assert dump(rig.store) == before
    assert rig.service.queues.stats(rig.queue).waiting_polls == 0


@on_service(limits(poll_wait_ms_max=700))
async def test_poll_that_wants_to_wait_longer_than_allowed_waits_as_long_as_allowed(
    rig: ServiceRig,
) -> None:
    before_ms = rig.clock.now_ms()

    assert await rig.begin_poll(wait_ms=10**9) == NOTHING_POLLED

    assert rig.clock.now_ms() == before_ms + 700


@on_service()
async def test_poll_that_does_not_wait_answers_nothing_at_once(rig: ServiceRig) -> None:
    before_ms = rig.clock.now_ms()

    assert await rig.begin_poll(wait_ms=0) == NOTHING_POLLED

    assert rig.clock.now_ms() == before_ms


@on_service()
async def test_poll_after_its_time_was_up_takes_no_later_item(rig: ServiceRig) -> None:
    task = await rig.waiting_poll(wait_ms=100)
    await asyncio.sleep(0.1)
    assert await task == NOTHING_POLLED

    await rig.add(b"a")

    assert rig.service.queues.stats(rig.queue).ready == 1


@on_service()
async def test_poll_that_was_served_or_cancelled_leaves_no_timer_behind(rig: ServiceRig) -> None:
    """Of polls that wait for minutes and are served at once there are thousands a second."""
    served, cancelled = await rig.waiting_poll(), await rig.waiting_poll()

    await rig.add(b"a")
    await served
    cancelled.cancel()
    await asyncio.wait([cancelled])

    assert rig.loop.timers() == 0


@on_service()
async def test_polls_that_wait_are_served_first_come_first_served(rig: ServiceRig) -> None:
    tasks = [await rig.waiting_poll(count) for count in (2, 1, 3)]

    ids = await rig.add(*[b"%d" % n for n in range(6)])

    answers = [await task for task in tasks]
    assert [list(answer.ids) for answer in answers] == [ids[:2], ids[2:3], ids[3:]]
    assert len({answer.lease_id for answer in answers}) == 3


@on_service()
async def test_poll_that_waits_for_many_is_served_with_what_comes_first(rig: ServiceRig) -> None:
    task = await rig.waiting_poll(50)

    ids = await rig.add(b"a", b"b", b"c")

    assert (await task).ids == ids


@on_service()
async def test_only_as_many_polls_wake_as_there_are_items(rig: ServiceRig) -> None:
    tasks = [await rig.waiting_poll() for _ in range(4)]
    assert rig.service.queues.stats(rig.queue).waiting_polls == 4

    ids = await rig.add(b"a", b"b")
    await turns()

    assert [task.done() for task in tasks] == [True, True, False, False]
    assert [list(tasks[n].result().ids) for n in range(2)] == [ids[:1], ids[1:]]
    assert rig.service.queues.stats(rig.queue).waiting_polls == 2
    await rig.add(b"c", b"d")
    assert all(polled.ids for polled in await asyncio.gather(*tasks))


@on_service()
async def test_poll_of_another_queue_is_not_woken(rig: ServiceRig) -> None:
    other = await rig.service.queues.open_queue("other", rig.session, must_exist=False)
    task = await rig.waiting_poll(wait_ms=100, queue=other)

    await rig.add(b"a")

    assert await task == NOTHING_POLLED
    assert rig.service.queues.stats(rig.queue).ready == 1


@on_service()
async def test_delayed_item_wakes_a_poll_at_its_time(rig: ServiceRig) -> None:
    async with rig.sweeper():
        task = await rig.waiting_poll()
        before_ms = rig.clock.now_ms()

        ids = await rig.add(b"later", delay_ms=1234)

        assert (await task).ids == ids
        assert rig.clock.now_ms() == before_ms + 1234


@on_service()
async def test_expired_lease_wakes_a_poll_at_its_time(rig: ServiceRig) -> None:
    async with rig.sweeper():
        ids = await rig.add(b"a")
        await rig.poll_now(lease_ms=777)
        before_ms = rig.clock.now_ms()

        polled = await rig.begin_poll()

        assert polled.ids == ids
        assert rig.clock.now_ms() == before_ms + 777


@on_service()
async def test_poll_gets_what_became_due_although_the_sweeper_has_not_looked(
    rig: ServiceRig,
) -> None:
    ids = await rig.add(b"a", b"b")
    await rig.poll_now(2, lease_ms=100)
    rig.clock.advance(100)

    # They were in one lease that expired, so each is leased alone now.
    answers = await rig.service.polls.poll_many(rig.queue, [2, 2], lease_ms=1000)
    assert [list(answer.ids) for answer in answers] == [ids[:1], ids[1:]]


@on_service()
async def test_poll_gets_what_became_due_although_another_queue_was_due_earlier(
    rig: ServiceRig,
) -> None:
    """Whether it does must not depend on what is due elsewhere."""
    other = await rig.service.queues.open_queue("other", rig.session, must_exist=False)
    await rig.service.items.add(other, NewItems([b"theirs"], [50]))
    ids = await rig.add(b"ours", delay_ms=60)
    rig.clock.advance(60)

    assert (await rig.poll_now()).ids == ids


@on_service()
async def test_item_due_goes_to_the_poll_that_waits_and_not_to_the_one_that_comes(
    rig: ServiceRig,
) -> None:
    task = await rig.waiting_poll()
    ids = await rig.add(b"a", delay_ms=50)
    rig.clock.advance(50)

    assert await rig.poll_now() == NOTHING_POLLED
    assert (await task).ids == ids


# --- limits ---------------------------------------------------------------------------------------


@on_service(limits(waiting_polls_max=2))
async def test_poll_past_waiting_polls_max_is_refused_and_the_others_wait_on(
    rig: ServiceRig,
) -> None:
    tasks = [await rig.waiting_poll() for _ in range(2)]

    with pytest.raises(ResourceExhausted, match="2 calls are waiting, the limit"):
        await rig.begin_poll()

    assert rig.service.queues.stats(rig.queue).waiting_polls == 2
    assert rig.admission.calls == 0
    await rig.add(b"a", b"b")
    assert all(polled.ids for polled in await asyncio.gather(*tasks))


@on_service(limits(waiting_polls_max=1))
async def test_waiting_polls_max_is_for_all_queues_together(rig: ServiceRig) -> None:
    other = await rig.service.queues.open_queue("other", rig.session, must_exist=False)
    task = await rig.waiting_poll()

    with pytest.raises(ResourceExhausted):
        await rig.begin_poll(queue=other)

    await rig.add(b"a")
    await task


@on_service(limits(waiting_polls_max=0))
async def test_poll_without_room_to_wait_still_gets_what_is_ready(rig: ServiceRig) -> None:
    ids = await rig.add(b"a")

    assert (await rig.begin_poll()).ids == ids
    assert await rig.begin_poll(wait_ms=0) == NOTHING_POLLED
