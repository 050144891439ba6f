"""Polls that wait when their queue goes, the server stops or the store refuses; and all at once."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queueber.engine.integrity.check_store import check_store
from queueber.errors import NotFound, Unavailable
from queueber.limits import MINUTE_MS
from queueber.model import NOTHING_POLLED, NewItems, Polled
from tests.support.service_rig import (
    ServiceRig,
    on_service,
    run_on_service,
)
from tests.support.virtual_loop import turns

# --- the gate -------------------------------------------------------------------------------------


@on_service()
async def test_poll_that_waits_is_no_call_under_way(rig: ServiceRig) -> None:
    served = await rig.waiting_poll()
    timed_out = await rig.waiting_poll(wait_ms=100)
    cancelled = await rig.waiting_poll()
    assert rig.admission.calls == 0

    cancelled.cancel()
    await rig.add(b"a")
    await asyncio.wait([served, timed_out, cancelled])

    assert rig.admission.calls == 0


# --- queues that go -------------------------------------------------------------------------------


@on_service()
async def test_delete_queue_answers_its_waiting_polls_with_not_found(rig: ServiceRig) -> None:
    doomed = await rig.service.queues.open_queue("doomed", rig.session, must_exist=False)
    tasks = [await rig.waiting_poll(queue=doomed) for _ in range(2)]
    unconcerned = await rig.waiting_poll()

    assert await rig.service.queues.delete_queue("doomed", rig.session)
    await turns()

    for task in tasks:
        with pytest.raises(NotFound, match="'doomed' was deleted"):
            await task
    assert not unconcerned.done()
    await rig.add(b"a")
    assert (await unconcerned).ids


@on_service()
async def test_poll_of_a_deleted_queue_is_not_found(rig: ServiceRig) -> None:
    doomed = await rig.service.queues.open_queue("doomed", rig.session, must_exist=False)
    await rig.service.items.add(doomed, NewItems([b"a"]))
    await rig.service.queues.delete_queue("doomed", rig.session)

    with pytest.raises(NotFound, match="'doomed' was deleted"):
        rig.begin_poll(queue=doomed)
    with pytest.raises(NotFound):
        await rig.service.polls.poll_many(doomed, [1], lease_ms=1000)


@pytest.mark.parametrize("is_filled", [True, False], ids=["with items", "empty"])
def test_poll_whose_queue_is_deleted_before_its_first_turn_is_not_found(is_filled: bool) -> None:
    """Calls that arrive together: the poll is checked, then the delete runs, then the poll.

    An adapter starts the coroutine of a poll as a task, so other calls come in between.
    """

    async def body(rig: ServiceRig) -> None:
        doomed = await rig.service.queues.open_queue("doomed", rig.session, must_exist=False)
        if is_filled:
            await rig.service.items.add(doomed, NewItems([b"a"]))
        one = rig.begin_poll(queue=doomed)
        many = rig.begin(rig.service.polls.poll_many(doomed, [1], lease_ms=1000))

        deleted = rig.service.queues.delete_queue("doomed", rig.session)

        assert await deleted
        outcomes = await asyncio.gather(one, many, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [NotFound, NotFound]

    run_on_service(body)


# --- shutdown -------------------------------------------------------------------------------------


@on_service()
async def test_drain_answers_waiting_polls_with_nothing_and_lets_no_call_in(
    rig: ServiceRig,
) -> None:
    other = await rig.service.queues.open_queue("other", rig.session, must_exist=False)
    tasks = [await rig.waiting_poll(), await rig.waiting_poll(queue=other)]
    before_ms = rig.clock.now_ms()

    await rig.service.drain()

    assert [await task for task in tasks] == [NOTHING_POLLED] * 2
    assert rig.clock.now_ms() == before_ms
    with pytest.raises(Unavailable, match="shutting down"):
        rig.session.admit()


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
                    delay_ms = number + 1 if kind == "delayed" else 0
                    added += await rig.add(*[b"x"] * (number + 1), delay_ms=delay_ms)
            await asyncio.sleep(MINUTE_MS / 1000)

        assert all(task.done() for task in tasks)
        answered = [task.result() for task in tasks if not task.cancelled()]
        delivered = [each for polled in answered for each in polled.ids]
        stats = rig.service.queues.stats(rig.queue)
        assert len(delivered) == len(set(delivered)) == stats.leased
        assert stats.ready + len(delivered) == len(added)
        assert set(delivered) <= set(added)
        assert (stats.waiting_polls, rig.admission.calls) == (0, 0)
        assert check_store(rig.store) == []

    run_on_service(body)
