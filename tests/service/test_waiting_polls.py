"""Polls that find nothing wait: until there is something, until their time is up, in order."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queueber.engine.invariants import check_store
from queueber.errors import NotFound, ResourceExhausted, Unavailable
from queueber.limits import MINUTE_MS
from queueber.model import NOTHING_POLLED, Polled
from tests.support.dumps import dump
from tests.support.service_rig import ServiceRig, limits, on_service, run_on_service
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
    assert rig.service.stats(rig.queue).in_progress == 2


@on_service()
async def test_poll_that_waits_in_vain_answers_nothing_when_its_time_is_up(
    rig: ServiceRig,
) -> None:
    before, before_ms = dump(rig.store), rig.clock.now_ms()

    polled = await rig.begin_poll(wait_ms=2500)

    assert polled == NOTHING_POLLED
    assert rig.clock.now_ms() == before_ms + 2500
    assert dump(rig.store) == before
    assert rig.service.stats(rig.queue).waiting_polls == 0


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

    assert rig.service.stats(rig.queue).ready == 1


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
    assert rig.service.stats(rig.queue).waiting_polls == 4

    ids = await rig.add(b"a", b"b")
    await turns()

    assert [task.done() for task in tasks] == [True, True, False, False]
    assert [list(tasks[n].result().ids) for n in range(2)] == [ids[:1], ids[1:]]
    assert rig.service.stats(rig.queue).waiting_polls == 2
    await rig.add(b"c", b"d")
    assert all(polled.ids for polled in await asyncio.gather(*tasks))


@on_service()
async def test_poll_of_another_queue_is_not_woken(rig: ServiceRig) -> None:
    other = await rig.service.queue("other", must_exist=False)
    task = await rig.waiting_poll(wait_ms=100, queue=other)

    await rig.add(b"a")

    assert await task == NOTHING_POLLED
    assert rig.service.stats(rig.queue).ready == 1


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

    assert (await rig.poll_now(2)).ids == ids


@on_service()
async def test_poll_gets_what_became_due_although_another_queue_was_due_earlier(
    rig: ServiceRig,
) -> None:
    """Whether it does must not depend on what is due elsewhere."""
    other = await rig.service.queue("other", must_exist=False)
    await rig.service.add(other, [b"theirs"], [50])
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

    with pytest.raises(ResourceExhausted, match="2 polls are waiting, the limit"):
        await rig.begin_poll()

    assert rig.service.stats(rig.queue).waiting_polls == 2
    assert rig.gate.calls == 0
    await rig.add(b"a", b"b")
    assert all(polled.ids for polled in await asyncio.gather(*tasks))


@on_service(limits(waiting_polls_max=1))
async def test_waiting_polls_max_is_for_all_queues_together(rig: ServiceRig) -> None:
    other = await rig.service.queue("other", must_exist=False)
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


# --- the gate -------------------------------------------------------------------------------------


@on_service()
async def test_poll_that_waits_is_no_call_under_way(rig: ServiceRig) -> None:
    served = await rig.waiting_poll()
    timed_out = await rig.waiting_poll(wait_ms=100)
    cancelled = await rig.waiting_poll()
    assert rig.gate.calls == 0

    cancelled.cancel()
    await rig.add(b"a")
    await asyncio.wait([served, timed_out, cancelled])

    assert rig.gate.calls == 0


# --- queues that go -------------------------------------------------------------------------------


@on_service()
async def test_delete_queue_answers_its_waiting_polls_with_not_found(rig: ServiceRig) -> None:
    doomed = await rig.service.queue("doomed", must_exist=False)
    tasks = [await rig.waiting_poll(queue=doomed) for _ in range(2)]
    unconcerned = await rig.waiting_poll()

    assert await rig.service.delete_queue("doomed")
    await turns()

    for task in tasks:
        with pytest.raises(NotFound, match="'doomed' was deleted"):
            await task
    assert not unconcerned.done()
    await rig.add(b"a")
    assert (await unconcerned).ids


@on_service()
async def test_poll_of_a_deleted_queue_is_not_found(rig: ServiceRig) -> None:
    doomed = await rig.service.queue("doomed", must_exist=False)
    await rig.service.add(doomed, [b"a"], [])
    await rig.service.delete_queue("doomed")

    with pytest.raises(NotFound, match="'doomed' was deleted"):
        rig.begin_poll(queue=doomed)
    with pytest.raises(NotFound):
        await rig.service.poll_many(doomed, [1], lease_ms=1000)


@pytest.mark.parametrize("is_filled", [True, False], ids=["with items", "empty"])
def test_poll_whose_queue_is_deleted_before_its_first_turn_is_not_found(is_filled: bool) -> None:
    """Calls that arrive together: the poll is checked, then the delete runs, then the poll.

    An adapter starts the coroutine of a poll as a task, so other calls come in between.
    """

    async def body(rig: ServiceRig) -> None:
        doomed = await rig.service.queue("doomed", must_exist=False)
        if is_filled:
            await rig.service.add(doomed, [b"a"], [])
        one = rig.begin_poll(queue=doomed)
        many = rig.begin(rig.service.poll_many(doomed, [1], lease_ms=1000))

        deleted = rig.service.delete_queue("doomed")

        assert await deleted
        outcomes = await asyncio.gather(one, many, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [NotFound, NotFound]

    run_on_service(body)


# --- shutdown -------------------------------------------------------------------------------------


@on_service()
async def test_drain_answers_waiting_polls_with_nothing_and_lets_no_call_in(
    rig: ServiceRig,
) -> None:
    other = await rig.service.queue("other", must_exist=False)
    tasks = [await rig.waiting_poll(), await rig.waiting_poll(queue=other)]
    before_ms = rig.clock.now_ms()

    await rig.service.drain()

    assert [await task for task in tasks] == [NOTHING_POLLED] * 2
    assert rig.clock.now_ms() == before_ms
    with pytest.raises(Unavailable, match="shutting down"):
        rig.gate.check()


@on_service()
async def test_drain_returns_once_the_last_call_has_ended(rig: ServiceRig) -> None:
    ends = rig.loop.create_future()
    call = rig.begin(ends)
    await turns()

    draining = rig.loop.create_task(rig.service.drain())
    await turns(10)
    assert not draining.done()
    ends.set_result(None)

    await draining
    assert call.done()


@on_service()
async def test_drain_returns_after_the_polls_that_it_answered(rig: ServiceRig) -> None:
    tasks = [await rig.waiting_poll() for _ in range(3)]

    await rig.service.drain()

    assert all(task.done() for task in tasks)


@on_service()
async def test_poll_after_drain_does_not_begin_to_wait(rig: ServiceRig) -> None:
    await rig.service.drain()
    before_ms = rig.clock.now_ms()

    assert await rig.begin_poll() == NOTHING_POLLED

    assert rig.clock.now_ms() == before_ms


# --- a store that refuses -------------------------------------------------------------------------


@on_service()
async def test_poll_whose_lease_the_store_refuses_is_told_and_the_item_stays(
    rig: ServiceRig,
) -> None:
    """The add itself was written: its caller must not be told otherwise."""
    first, second = await rig.waiting_poll(), await rig.waiting_poll()
    write = rig.store.write
    writes = 0

    def refuse_the_second(batch: object) -> None:
        nonlocal writes
        writes += 1
        if writes == 2:
            raise Unavailable("the disk is full")
        write(batch)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as fault:
        fault.setattr(rig.store, "write", refuse_the_second)
        ids = await rig.add(b"a")

    with pytest.raises(Unavailable, match="full"):
        await first
    assert (await second).ids == ids
    assert check_store(rig.store) == []


# --- whatever happens -----------------------------------------------------------------------------

events = st.lists(
    st.tuples(
        st.integers(0, 12),  # when
        st.sampled_from(["poll", "add", "cancel", "delayed"]),
        st.integers(0, 5),  # how many, which one, or how long
    ),
    max_size=25,
)


@settings(max_examples=60, deadline=None)
@given(events=events)
def test_polls_adds_and_cancels_in_any_order_lose_and_double_nothing(
    events: list[tuple[int, str, int]],
) -> None:
    """Every item is with exactly one poll that was answered, or ready; and order is kept."""

    async def body(rig: ServiceRig) -> None:
        start_ms = rig.clock.now_ms()
        tasks: list[asyncio.Task[Polled]] = []
        added: list[bytes] = []
        async with rig.sweeper():
            for at_ms, kind, number in sorted(events, key=lambda event: event[0]):
                # The loop turns only when time passes: what is at one time happens in one turn.
                if (ahead_ms := start_ms + at_ms - rig.clock.now_ms()) > 0:
                    await asyncio.sleep(ahead_ms / 1000)
                if kind == "poll":
                    tasks.append(rig.begin_poll(number, wait_ms=number + 1))
                elif kind == "cancel" and tasks:
                    tasks[number % len(tasks)].cancel()
                elif kind in ("add", "delayed"):
                    adding = rig.service.add(
                        rig.queue,
                        [b"x"] * (number + 1),
                        [number + 1] * (number + 1) if kind == "delayed" else [],
                    )
                    added += await adding
            await asyncio.sleep(MINUTE_MS / 1000)

        assert all(task.done() for task in tasks)
        answered = [task.result() for task in tasks if not task.cancelled()]
        delivered = [each for polled in answered for each in polled.ids]
        stats = rig.service.stats(rig.queue)
        assert len(delivered) == len(set(delivered)) == stats.in_progress
        assert stats.ready + len(delivered) == len(added)
        assert set(delivered) <= set(added)
        assert (stats.waiting_polls, rig.gate.calls) == (0, 0)
        assert check_store(rig.store) == []

    run_on_service(body)
