"""read_results with nothing to read: waits for a result, and for no longer than it may."""

import asyncio

import pytest

from queueber.errors import NotFound
from queueber.limits import DAY_MS
from queueber.model import Polled, QueueSettings, Results
from tests.support.dumps import dump
from tests.support.service_rig import HeldSync, ServiceRig, limits, on_service, run_on_service
from tests.support.virtual_loop import turns

NOTHING = Results([], 0, 0)


def begin_read(
    rig: ServiceRig, reader: str = "", *, limit: int = 0, wait_ms: int = 30_000
) -> "asyncio.Task[Results]":
    found = rig.service.results.read_results(
        rig.queue, reader=reader, offset=0, limit=limit, wait_ms=wait_ms
    )
    return rig.begin(found)


async def waiting_read(
    rig: ServiceRig, reader: str = "", *, limit: int = 0, wait_ms: int = 30_000
) -> "asyncio.Task[Results]":
    task = begin_read(rig, reader, limit=limit, wait_ms=wait_ms)
    await turns()
    assert not task.done()
    return task


async def leased(rig: ServiceRig, count: int = 1) -> Polled:
    await rig.add(*[b"x"] * count)
    return await rig.poll_now(count)


def texts(results: Results) -> list[bytes]:
    return [each.result for each in results.results]


@on_service()
async def test_read_results_with_nothing_to_read_wakes_on_complete_without_time_passing(
    rig: ServiceRig,
) -> None:
    polled = await leased(rig, 2)
    tasks = [await waiting_read(rig), await waiting_read(rig, "reader", limit=1)]
    before_ms = rig.clock.now_ms()

    await rig.complete(polled, b"r")

    assert [texts(await task) for task in tasks] == [[b"r", b"r"], [b"r"]]
    assert rig.clock.now_ms() == before_ms
    assert rig.loop.timers() == 0


@on_service()
async def test_read_results_wakes_its_own_queue_only(rig: ServiceRig) -> None:
    mine = rig.queue
    polled = await leased(rig)
    rig.queue = await rig.service.queues.open_queue("other", rig.session, must_exist=False)
    theirs = await waiting_read(rig, wait_ms=1000)
    rig.queue = mine

    await rig.complete(polled)
    await turns()

    assert not theirs.done()
    assert await theirs == NOTHING


@on_service()
async def test_read_results_does_not_wake_on_what_leaves_no_result(rig: ServiceRig) -> None:
    task = await waiting_read(rig, wait_ms=1000)
    before_ms = rig.clock.now_ms()
    polled = await leased(rig)
    await rig.service.items.remove(rig.queue, polled.ids, [polled.lease_id])
    await rig.fail(await leased(rig))
    assert await rig.complete(polled) == [False]

    assert await task == NOTHING
    assert rig.clock.now_ms() == before_ms + 1000


@on_service(limits(poll_wait_ms_max=700))
async def test_read_results_in_vain_answers_nothing_when_its_time_is_up(rig: ServiceRig) -> None:
    before, before_ms = dump(rig.store), rig.clock.now_ms()

    assert await begin_read(rig, wait_ms=500) == NOTHING
    assert rig.clock.now_ms() == before_ms + 500
    assert await begin_read(rig, wait_ms=10**9) == NOTHING
    assert rig.clock.now_ms() == before_ms + 500 + 700
    assert await begin_read(rig, wait_ms=0) == NOTHING
    assert rig.clock.now_ms() == before_ms + 500 + 700
    assert dump(rig.store) == before


@on_service()
async def test_reader_that_has_acknowledged_all_waits_for_the_next_result(rig: ServiceRig) -> None:
    await rig.complete(await leased(rig), b"first")
    await rig.service.results.ack_results(rig.queue, "reader", 1)
    polled = await leased(rig)
    task = await waiting_read(rig, "reader")

    await rig.complete(polled, b"second")

    found = await task
    assert (texts(found), found.next_offset, found.missed) == ([b"second"], 2, 0)


@on_service()
async def test_reader_that_waits_past_what_was_deleted_is_told_what_it_missed(
    rig: ServiceRig,
) -> None:
    await rig.service.queues.configure_queue(
        "default", QueueSettings(result_age_ms=DAY_MS), rig.session
    )
    await rig.complete(await leased(rig), b"old")
    rig.clock.advance(DAY_MS)
    assert rig.service.sweep()
    polled = await leased(rig)
    task = await waiting_read(rig)

    await rig.complete(polled, b"new")

    found = await task
    assert (texts(found), found.next_offset, found.missed) == ([b"new"], 2, 1)


# --- the queue goes, the server stops, the caller hangs up ----------------------------------------


@on_service()
async def test_read_results_whose_queue_is_deleted_is_not_found(rig: ServiceRig) -> None:
    rig.queue = await rig.service.queues.open_queue("doomed", rig.session, must_exist=False)
    task = await waiting_read(rig)
    before_ms = rig.clock.now_ms()

    await rig.service.queues.delete_queue("doomed", rig.session)

    with pytest.raises(NotFound, match="'doomed' was deleted"):
        await task
    assert rig.clock.now_ms() == before_ms


@on_service()
async def test_drain_answers_readers_who_wait_with_nothing(rig: ServiceRig) -> None:
    task = await waiting_read(rig)
    before_ms = rig.clock.now_ms()

    await rig.service.drain()

    assert task.done()
    assert await task == NOTHING
    assert await begin_read(rig) == NOTHING
    assert rig.clock.now_ms() == before_ms


@on_service(limits(waiting_polls_max=1))
async def test_read_results_cancelled_leaves_nothing_behind(rig: ServiceRig) -> None:
    before = dump(rig.store)
    for _ in range(3):
        task = await waiting_read(rig, "reader")
        assert rig.admission.calls == 0

        task.cancel()
        await asyncio.wait([task])

        assert task.cancelled()
        assert (rig.admission.calls, rig.loop.timers()) == (0, 0)
    assert dump(rig.store) == before
    assert rig.service.results.results_stats(rig.queue).readers == {}


@on_service()
async def test_read_results_whose_result_comes_before_its_first_turn_answers_at_once(
    rig: ServiceRig,
) -> None:
    """An adapter starts the coroutine as a task, so other calls come in between."""
    polled = await leased(rig)
    before_ms = rig.clock.now_ms()

    task = begin_read(rig)
    completed = rig.service.items.complete(rig.queue, polled.ids, [polled.lease_id], [b"r"])

    assert await completed == [True]
    assert texts(await task) == [b"r"]
    assert rig.clock.now_ms() == before_ms


# --- the disk -------------------------------------------------------------------------------------


def test_read_results_is_not_answered_before_the_result_is_durable() -> None:
    sync = HeldSync()

    async def body(rig: ServiceRig) -> None:
        with rig.loop.time_stands_still():
            sync.let()
            sync.let()
            polled = await leased(rig)
            waiting = await waiting_read(rig)

            completing = asyncio.ensure_future(rig.complete(polled, b"r"))
            await sync.wait_begun(3)
            late = begin_read(rig)
            await turns(10)
            assert not any(task.done() for task in (waiting, completing, late))
            sync.let_all()

            assert await completing == [True]
            assert [texts(await waiting), texts(await late)] == [[b"r"], [b"r"]]

    run_on_service(body, sync=sync)
