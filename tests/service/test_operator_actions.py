"""Operating: peek, cancel, purge and redrive, as an operator calls them on a queue at work."""

import pytest

from queueber.engine.integrity.check_store import check_store
from queueber.errors import Unavailable
from queueber.limits import PEEK_ITEMS_MAX, PURGE_ITEMS_MAX
from queueber.model import NOTHING_POLLED, ItemState, QueueSettings
from tests.support.dumps import dump
from tests.support.rig import refuse_write
from tests.support.service_rig import ServiceRig, on_service

ID = bytes(16)


async def one_of_each(rig: ServiceRig) -> dict[ItemState, bytes]:
    """An item of every state."""
    await rig.service.queues.configure_queue("default", QueueSettings(attempts_max=1), rig.session)
    (dead,) = await rig.add(b"dead")
    await rig.fail(await rig.poll_now())
    (held,) = await rig.add(b"held")
    await rig.poll_now()
    (ready,) = await rig.add(b"ready")
    (delayed,) = await rig.add(b"delayed", delay_ms=5000)
    return {
        ItemState.DEAD: dead,
        ItemState.LEASED: held,
        ItemState.READY: ready,
        ItemState.DELAYED: delayed,
    }


def counts(rig: ServiceRig) -> tuple[int, int, int, int]:
    """Ready, delayed, in progress and dead."""
    stats = rig.service.queues.stats(rig.queue)
    return stats.ready, stats.delayed, stats.leased, stats.dead


# --- peek -----------------------------------------------------------------------------------------


@on_service()
async def test_peek_shows_the_items_of_a_state_and_changes_nothing(rig: ServiceRig) -> None:
    ids = await one_of_each(rig)
    before = dump(rig.store)

    for state, item_id in ids.items():
        (item,), after = rig.service.items.peek(rig.queue, state, b"", 0)
        assert (item.id, after) == (item_id, b"")
    assert dump(rig.store) == before


@on_service()
async def test_peek_goes_on_where_a_page_ended_up_to_the_last(rig: ServiceRig) -> None:
    ids = await rig.add(*[b"x"] * 5)

    first, after = rig.service.items.peek(rig.queue, ItemState.READY, b"", 3)
    rest, end = rig.service.items.peek(rig.queue, ItemState.READY, after, 3)

    assert [item.id for item in first + rest] == ids
    assert (len(first), end) == (3, b"")


@on_service()
async def test_peek_without_a_limit_or_with_a_large_one_is_a_page(rig: ServiceRig) -> None:
    await rig.add(*[b""] * (PEEK_ITEMS_MAX + 1))

    for limit in (0, 10 * PEEK_ITEMS_MAX):
        items, after = rig.service.items.peek(rig.queue, ItemState.READY, b"", limit)
        assert len(items) == PEEK_ITEMS_MAX
        assert len(rig.service.items.peek(rig.queue, ItemState.READY, after, limit)[0]) == 1


# --- cancel and purge -----------------------------------------------------------------------------


@on_service()
async def test_cancel_takes_items_of_every_state_and_answers_for_each(rig: ServiceRig) -> None:
    ids = await one_of_each(rig)

    cancelled = await rig.service.items.cancel(rig.queue, [*ids.values(), ID])

    assert cancelled == [True] * 4 + [False]
    assert counts(rig) == (0, 0, 0, 0)
    assert rig.service.queues.stats(rig.queue).cancelled_total == 4
    assert check_store(rig.store) == []


@on_service()
async def test_cancel_of_an_item_in_progress_refuses_the_outcome_of_its_holder(
    rig: ServiceRig,
) -> None:
    await rig.add(b"gone", b"kept")
    polled = await rig.poll_now(2)

    await rig.service.items.cancel(rig.queue, polled.ids[:1])

    assert await rig.complete(polled) == [False, True]


@on_service()
async def test_purge_takes_one_state_only(rig: ServiceRig) -> None:
    await one_of_each(rig)
    left = [1, 1, 1, 1]

    for place, state in enumerate(
        (ItemState.READY, ItemState.DELAYED, ItemState.LEASED, ItemState.DEAD)
    ):
        assert await rig.service.items.purge(rig.queue, state, 0) == (1, False)
        left[place] = 0
        assert counts(rig) == tuple(left)
        assert check_store(rig.store) == []


@on_service()
async def test_purge_takes_a_slice_and_says_whether_there_is_more(rig: ServiceRig) -> None:
    await rig.add(*[b""] * (PURGE_ITEMS_MAX + 5))

    assert await rig.service.items.purge(rig.queue, ItemState.READY, 2) == (2, True)
    assert await rig.service.items.purge(rig.queue, ItemState.READY, 10**9) == (
        PURGE_ITEMS_MAX,
        True,
    )
    assert await rig.service.items.purge(rig.queue, ItemState.READY, 0) == (3, False)
    assert await rig.service.items.purge(rig.queue, ItemState.READY, 0) == (0, False)


@on_service()
async def test_item_that_was_cancelled_while_it_was_delayed_wakes_nobody(rig: ServiceRig) -> None:
    async with rig.sweeper():
        ids = await rig.add(b"a", b"b", delay_ms=100)
        tasks = [await rig.waiting_poll(wait_ms=1000) for _ in range(2)]

        await rig.service.items.cancel(rig.queue, ids[:1])

        assert (await tasks[0]).ids == ids[1:]
        assert await tasks[1] == NOTHING_POLLED


# --- reschedule -----------------------------------------------------------------------------------


@on_service()
async def test_item_that_runs_now_is_given_to_a_poll_that_waits(rig: ServiceRig) -> None:
    ids = await rig.add(b"a", delay_ms=5000)
    task = await rig.waiting_poll(wait_ms=1000)
    before_ms = rig.clock.now_ms()

    assert await rig.service.items.reschedule(rig.queue, ids, 0) == [True]

    assert (await task).ids == ids
    assert rig.clock.now_ms() == before_ms


@on_service()
async def test_poll_that_waits_gets_an_item_at_its_new_time(rig: ServiceRig) -> None:
    async with rig.sweeper():
        ids = await rig.add(b"a", delay_ms=5000)
        task = await rig.waiting_poll(wait_ms=1000)
        before_ms = rig.clock.now_ms()

        assert await rig.service.items.reschedule(rig.queue, ids, 200) == [True]

        assert (await task).ids == ids
        assert 200 <= rig.clock.now_ms() - before_ms < 1000


@on_service()
async def test_reschedule_answers_for_an_item_of_each_state(rig: ServiceRig) -> None:
    ids = await one_of_each(rig)

    rescheduled = await rig.service.items.reschedule(rig.queue, [*ids.values(), ID], 500)

    assert rescheduled == [False, False, True, True, False]
    assert counts(rig) == (0, 2, 1, 1)
    assert check_store(rig.store) == []


# --- redrive --------------------------------------------------------------------------------------


async def dead_letters(rig: ServiceRig, count: int) -> list[bytes]:
    await rig.service.queues.configure_queue("default", QueueSettings(attempts_max=1), rig.session)
    ids = await rig.add(*[b"x"] * count)
    await rig.fail(await rig.poll_now(count))
    return ids


@on_service()
async def test_redrive_by_id_brings_back_those_that_are_dead(rig: ServiceRig) -> None:
    ids = await dead_letters(rig, 3)

    assert await rig.service.items.redrive(rig.queue, [*ids[:2], ids[0], ID], 1) == (2, False)

    polled = await rig.poll_now(9)
    assert polled.ids == ids[:2]
    assert not polled.details.attempts, "as if they had just been added"
    assert counts(rig) == (0, 0, 2, 1)


@on_service()
async def test_redrive_of_all_takes_a_slice_and_says_whether_there_is_more(
    rig: ServiceRig,
) -> None:
    ids = await dead_letters(rig, 5)

    assert await rig.service.items.redrive(rig.queue, [], 2) == (2, True)
    assert await rig.service.items.redrive(rig.queue, [], 0) == (3, False)
    assert await rig.service.items.redrive(rig.queue, [], 0) == (0, False)

    assert (await rig.poll_now(9)).ids == ids


@on_service()
async def test_redrive_serves_the_polls_that_wait_in_order(rig: ServiceRig) -> None:
    ids = await dead_letters(rig, 3)
    tasks = [await rig.waiting_poll(2), await rig.waiting_poll(2)]
    before_ms = rig.clock.now_ms()

    await rig.service.items.redrive(rig.queue, [], 0)

    assert [list((await task).ids) for task in tasks] == [ids[:2], ids[2:]]
    assert rig.clock.now_ms() == before_ms


@on_service()
async def test_operation_that_the_store_refuses_changes_nothing(rig: ServiceRig) -> None:
    ids = await one_of_each(rig)
    before, was = dump(rig.store), counts(rig)
    with pytest.MonkeyPatch.context() as fault:
        fault.setattr(rig.store, "write", refuse_write)
        with pytest.raises(Unavailable):
            rig.service.items.cancel(rig.queue, list(ids.values()))
        for state in ItemState:
            with pytest.raises(Unavailable):
                rig.service.items.purge(rig.queue, state, 0)
        with pytest.raises(Unavailable):
            rig.service.items.redrive(rig.queue, [], 0)

    assert dump(rig.store) == before
    assert counts(rig) == was
    assert check_store(rig.store) == []
