"""Bound leases in memory: what queues that go and a full disk leave of them, and how many."""

import pytest

from queueber.db.store.contract import Batch
from queueber.engine.integrity.check_store import check_store
from queueber.errors import Unavailable
from queueber.limits import STORE_RETRY_MS, SWEEP_SLICE_ITEMS
from queueber.model import Polled, QueueSettings
from queueber.service.bound_leases import BoundLeases
from tests.support.dumps import dump
from tests.support.rig import refuse_write
from tests.support.service_rig import ServiceRig, limits, on_service

OURS = object()

# --- what may come between ------------------------------------------------------------------------


@on_service()
async def test_connection_ended_after_its_queue_was_deleted_spares_the_new_one(
    rig: ServiceRig,
) -> None:
    doomed = await rig.service.queues.open_queue("doomed", rig.session, must_exist=False)
    await rig.add(b"gone", queue=doomed)
    ids = await rig.add(b"kept")
    await rig.poll_now(connection=OURS, queue=doomed)
    await rig.poll_now(connection=OURS)
    await rig.service.queues.delete_queue("doomed", rig.session)
    anew = await rig.service.queues.open_queue("doomed", rig.session, must_exist=False)
    await rig.add(b"new", queue=anew)
    held = await rig.poll_now(queue=anew)

    rig.service.bound_leases.connection_ended(OURS)

    assert (await rig.poll_now(9)).ids == ids
    assert rig.service.queues.stats(anew).leased == len(held.ids) == 1
    assert check_store(rig.store) == []


@on_service()
async def test_connection_ended_on_a_full_disk_is_tried_again(rig: ServiceRig) -> None:
    async with rig.sweeper():
        ids = await rig.add(b"a")
        await rig.poll_now(connection=OURS, lease_ms=5000)
        task = await rig.waiting_poll()
        before, before_ms = dump(rig.store), rig.clock.now_ms()
        with pytest.MonkeyPatch.context() as fault:
            fault.setattr(rig.store, "write", refuse_write)
            rig.service.bound_leases.connection_ended(OURS)
        assert dump(rig.store) == before

        assert (await task).ids == ids
        assert rig.clock.now_ms() == before_ms + STORE_RETRY_MS


@on_service()
async def test_connection_ended_goes_on_after_a_queue_whose_leases_the_store_refused_to_end(
    rig: ServiceRig,
) -> None:
    other = await rig.service.queues.open_queue("other", rig.session, must_exist=False)
    await rig.add(b"refused")
    ids = await rig.add(b"ended", queue=other)
    refused = await rig.poll_now(connection=OURS)
    await rig.poll_now(connection=OURS, queue=other)
    write, refusals = rig.store.write, [Unavailable("the disk is full")]

    def refuse_once(batch: Batch) -> None:
        if refusals:
            raise refusals.pop()
        write(batch)

    with pytest.MonkeyPatch.context() as fault:
        fault.setattr(rig.store, "write", refuse_once)
        rig.service.bound_leases.connection_ended(OURS)

    assert (await rig.poll_now(9, queue=other)).ids == ids
    assert await rig.complete(refused) == [True]
    assert check_store(rig.store) == []


# --- memory ---------------------------------------------------------------------------------------


async def lease_one(rig: ServiceRig) -> Polled:
    await rig.add(b"x")
    return await rig.poll_now()


@on_service()
async def test_bound_leases_of_a_long_connection_are_dropped_when_they_end(
    rig: ServiceRig,
) -> None:
    bound = BoundLeases(rig.service.shell)
    live = await lease_one(rig)
    bound.add(OURS, rig.queue.state, [live.lease_id])
    for number in range(5000):
        bound.add(OURS, rig.queue.state, [number.to_bytes(16)])

    assert bound.size(OURS) <= 1001
    assert bound.of(OURS) == [(rig.queue.state, [live.lease_id])]
    bound.connection_ended(OURS)
    assert (bound.size(OURS), bound.of(OURS)) == (0, [])
    assert rig.queue.state.counters.leased == 0


@on_service(limits(poll_items_max=2000))
async def test_bound_leases_that_live_are_all_kept_however_many(rig: ServiceRig) -> None:
    await rig.service.queues.configure_queue("default", QueueSettings(attempts_max=9), rig.session)
    await rig.add(*[b"x"] * 4000)
    for _ in range(2):
        await rig.service.polls.poll_many(rig.queue, [1] * 2000, lease_ms=1000, connection=OURS)
    assert rig.service.queues.stats(rig.queue).leases == 4000

    rig.service.bound_leases.connection_ended(OURS)
    assert rig.service.queues.stats(rig.queue).leases == 4000 - SWEEP_SLICE_ITEMS, "the first slice"
    while rig.service.sweep():
        pass

    assert rig.service.queues.stats(rig.queue).leases == 0
    assert rig.service.queues.stats(rig.queue).ready == 4000
