"""wait_batch when the batch does not end: time, shutdown, queues that go, callers that hang up."""

import asyncio

import pytest

from queueber.errors import NotFound, ResourceExhausted
from queueber.model import Receipt
from tests.support.dumps import dump
from tests.support.service_rig import HeldSync, ServiceRig, limits, on_service, run_on_service
from tests.support.virtual_loop import turns

BATCH = "fan-out"


async def waiting_for_batch(rig: ServiceRig, wait_ms: int = 30_000) -> "asyncio.Task[Receipt]":
    return await rig.waiting(rig.service.results.wait_for_batch(rig.queue, BATCH, wait_ms))


# --- time -----------------------------------------------------------------------------------------


@on_service()
async def test_wait_batch_whose_time_is_up_answers_as_it_is(rig: ServiceRig) -> None:
    await rig.add(b"a", b"b", batch=BATCH)
    task = await waiting_for_batch(rig, wait_ms=2500)
    before_ms = rig.clock.now_ms()
    await rig.complete(await rig.poll_now())

    receipt = await task

    assert (receipt.added, receipt.done, receipt.live, receipt.complete) == (2, 1, 1, False)
    assert rig.clock.now_ms() == before_ms + 2500


@on_service(limits(poll_wait_ms_max=700))
async def test_wait_batch_waits_no_longer_than_the_server_allows(rig: ServiceRig) -> None:
    await rig.add(b"a", batch=BATCH)
    task = await waiting_for_batch(rig, wait_ms=10**9)
    before_ms = rig.clock.now_ms()

    assert not (await task).complete

    assert rig.clock.now_ms() == before_ms + 700


@on_service()
async def test_wait_batch_that_is_woken_in_vain_does_not_begin_its_time_anew(
    rig: ServiceRig,
) -> None:
    """A queue that goes wakes all, for those of that queue to find out."""
    await rig.add(b"a", batch=BATCH)
    await rig.service.queues.open_queue("doomed", rig.session, must_exist=False)
    task = await waiting_for_batch(rig, wait_ms=1000)
    before_ms = rig.clock.now_ms()

    await asyncio.sleep(0.6)
    await rig.service.queues.delete_queue("doomed", rig.session)
    await turns()
    assert not task.done()

    assert not (await task).complete
    assert rig.clock.now_ms() == before_ms + 1000


# --- the queue goes, the server stops -------------------------------------------------------------


@on_service()
async def test_wait_batch_whose_queue_is_deleted_is_not_found(rig: ServiceRig) -> None:
    rig.queue = await rig.service.queues.open_queue("doomed", rig.session, must_exist=False)
    await rig.add(b"a", batch=BATCH)
    task = await waiting_for_batch(rig)
    before_ms = rig.clock.now_ms()

    assert await rig.service.queues.delete_queue("doomed", rig.session)

    with pytest.raises(NotFound, match="'doomed' was deleted"):
        await task
    assert rig.clock.now_ms() == before_ms


@on_service()
async def test_drain_answers_those_who_wait_for_a_batch_as_it_is(rig: ServiceRig) -> None:
    await rig.add(b"a", batch=BATCH)
    task = await waiting_for_batch(rig)
    before_ms = rig.clock.now_ms()

    await rig.service.drain()

    assert task.done()
    assert not (await task).complete
    assert rig.clock.now_ms() == before_ms
    again = rig.begin(rig.service.results.wait_for_batch(rig.queue, BATCH, 1000))
    assert not (await again).complete
    assert rig.clock.now_ms() == before_ms, "after that nobody begins to wait"


# --- limits ---------------------------------------------------------------------------------------


@on_service(limits(waiting_polls_max=2))
async def test_wait_batch_past_the_limit_of_waiting_calls_is_refused_and_the_others_wait_on(
    rig: ServiceRig,
) -> None:
    """Polls, readers and those who wait for batches share one limit."""
    await rig.add(b"a", batch=BATCH)
    polled = await rig.poll_now()
    poll, waiting = await rig.waiting_poll(wait_ms=500), await waiting_for_batch(rig)

    calls = [
        rig.begin(rig.service.results.wait_for_batch(rig.queue, BATCH, 1000)),
        rig.begin(
            rig.service.results.read_results(rig.queue, reader="", offset=0, limit=0, wait_ms=1000)
        ),
        rig.begin_poll(),
    ]
    refusals = await asyncio.gather(*calls, return_exceptions=True)

    assert [type(refusal) for refusal in refusals] == [ResourceExhausted] * 3
    assert {str(refusal) for refusal in refusals} == {
        "2 calls are waiting, the limit; call again later"
    }
    assert rig.admission.calls == 0
    await rig.complete(polled)
    assert (await waiting).complete
    assert not (await poll).ids


@on_service(limits(waiting_polls_max=1))
async def test_wait_batch_that_is_woken_in_vain_keeps_its_place(rig: ServiceRig) -> None:
    await rig.add(b"a", batch=BATCH)
    await rig.service.queues.open_queue("doomed", rig.session, must_exist=False)
    task = await waiting_for_batch(rig)

    await rig.service.queues.delete_queue("doomed", rig.session)
    with pytest.raises(ResourceExhausted):
        await rig.begin_poll(
            queue=await rig.service.queues.open_queue("other", rig.session, must_exist=False)
        )

    await rig.complete(await rig.poll_now())
    assert (await task).complete


@on_service(limits(waiting_polls_max=0))
async def test_wait_batch_without_room_to_wait_still_says_what_is_complete(
    rig: ServiceRig,
) -> None:
    await rig.add(b"a", batch=BATCH)
    await rig.complete(await rig.poll_now())

    assert (await rig.begin(rig.service.results.wait_for_batch(rig.queue, BATCH, 1000))).complete


# --- callers that hang up -------------------------------------------------------------------------


@on_service(limits(waiting_polls_max=1))
async def test_wait_batch_cancelled_leaves_nothing_behind(rig: ServiceRig) -> None:
    await rig.add(b"a", batch=BATCH)
    before = dump(rig.store)
    for _ in range(3):
        task = await waiting_for_batch(rig)
        assert rig.admission.calls == 0

        task.cancel()
        await asyncio.wait([task])

        assert task.cancelled()
        assert (rig.admission.calls, rig.loop.timers()) == (0, 0)
    assert dump(rig.store) == before


@on_service()
async def test_wait_batch_cancelled_in_the_turn_of_the_last_end_harms_nobody(
    rig: ServiceRig,
) -> None:
    await rig.add(b"a", batch=BATCH)
    polled = await rig.poll_now()
    gone, other = await waiting_for_batch(rig), await waiting_for_batch(rig)

    completed = rig.service.items.complete(rig.queue, polled.ids, [polled.lease_id], [b"r"])
    gone.cancel()

    assert await completed == [True]
    assert (await other).complete
    assert gone.cancelled()
    assert rig.loop.timers() == 0


# --- calls that arrive together -------------------------------------------------------------------


@on_service()
async def test_wait_batch_whose_batch_ends_before_its_first_turn_answers_at_once(
    rig: ServiceRig,
) -> None:
    """An adapter starts the coroutine as a task, so other calls come in between."""
    await rig.add(b"a", batch=BATCH)
    polled = await rig.poll_now()
    before_ms = rig.clock.now_ms()

    task = rig.begin(rig.service.results.wait_for_batch(rig.queue, BATCH, 30_000))
    completed = rig.service.items.complete(rig.queue, polled.ids, [polled.lease_id], [b"r"])

    assert await completed == [True]
    assert (await task).complete
    assert rig.clock.now_ms() == before_ms


@on_service()
async def test_wait_batch_whose_queue_goes_before_its_first_turn_is_not_found_at_once(
    rig: ServiceRig,
) -> None:
    rig.queue = await rig.service.queues.open_queue("doomed", rig.session, must_exist=False)
    await rig.add(b"a", batch=BATCH)
    before_ms = rig.clock.now_ms()

    task = rig.begin(rig.service.results.wait_for_batch(rig.queue, BATCH, 30_000))
    deleted = rig.service.queues.delete_queue("doomed", rig.session)

    assert await deleted
    with pytest.raises(NotFound, match="'doomed' was deleted"):
        await task
    assert rig.clock.now_ms() == before_ms


# --- the disk -------------------------------------------------------------------------------------


def test_wait_batch_is_not_answered_before_the_last_end_is_durable() -> None:
    sync = HeldSync()

    async def body(rig: ServiceRig) -> None:
        with rig.loop.time_stands_still():
            sync.let()
            await rig.add(b"a", batch=BATCH)
            sync.let()
            polled = await rig.poll_now()
            task = await waiting_for_batch(rig)

            completing = asyncio.ensure_future(rig.complete(polled))
            await sync.wait_begun(3)
            await turns(10)
            assert not task.done()
            assert not completing.done()
            sync.let_all()

            assert (await task).complete
            assert await completing == [True]

    run_on_service(body, sync=sync)
