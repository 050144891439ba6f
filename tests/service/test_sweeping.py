"""What the sweeper asks of the service, and when the service wakes it."""

import pytest

from queueber.db.store.contract import Batch
from queueber.errors import Unavailable
from queueber.limits import STORE_RETRY_MS
from tests.support.rig import refuse_write
from tests.support.service_rig import LEASE_MS, ServiceRig, on_service


@on_service()
async def test_next_due_in_ms_with_nothing_due_is_none(rig: ServiceRig) -> None:
    await rig.add(b"a")

    assert rig.service.next_due_in_ms() is None
    assert not rig.service.sweep()


@on_service()
async def test_next_due_in_ms_counts_down_to_zero_and_stays_there(rig: ServiceRig) -> None:
    await rig.add(b"a", delay_ms=100)

    seen = []
    for _ in range(4):
        seen.append(rig.service.next_due_in_ms())
        rig.clock.advance(60)

    assert seen == [100, 40, 0, 0]


@on_service()
async def test_sweep_does_what_is_due_and_says_so(rig: ServiceRig) -> None:
    await rig.add(b"a", delay_ms=100)
    rig.clock.advance(99)
    assert not rig.service.sweep()
    rig.clock.advance(1)

    assert rig.service.sweep()

    assert rig.service.queues.stats(rig.queue).ready == 1
    assert not rig.service.sweep()
    assert rig.service.next_due_in_ms() is None


@on_service()
async def test_sweeper_is_woken_when_a_delay_is_due_earlier_and_only_then(rig: ServiceRig) -> None:
    rig.service.next_due_in_ms()

    wakes = []
    for delay_ms in (500, 600, 500, 400):
        await rig.add(b"x", delay_ms=delay_ms)
        wakes.append(rig.sweeper_wakes)
        rig.service.next_due_in_ms()  # as the sweeper does before it sleeps again

    assert wakes == [1, 1, 1, 2]


@on_service()
async def test_sweeper_is_woken_once_until_it_has_looked(rig: ServiceRig) -> None:
    rig.service.next_due_in_ms()
    for delay_ms in (500, 400, 300):
        await rig.add(b"x", delay_ms=delay_ms)

    assert rig.sweeper_wakes == 1
    assert rig.service.next_due_in_ms() == 300


@on_service()
async def test_sweeper_is_not_woken_by_items_that_are_ready_at_once(rig: ServiceRig) -> None:
    rig.service.next_due_in_ms()

    await rig.add(b"a", b"b")

    assert rig.sweeper_wakes == 0


@on_service()
async def test_sweeper_is_woken_by_a_lease_that_is_due_earlier(rig: ServiceRig) -> None:
    await rig.add(b"a", b"b", b"c")
    rig.service.next_due_in_ms()

    await rig.poll_now(lease_ms=1000)
    assert rig.sweeper_wakes == 1
    rig.service.next_due_in_ms()
    await rig.poll_now(lease_ms=2000)
    assert rig.sweeper_wakes == 1
    await rig.service.polls.poll_many(rig.queue, [1], lease_ms=500)

    assert rig.sweeper_wakes == 2
    assert rig.service.next_due_in_ms() == 500


@on_service()
async def test_sweeper_is_woken_by_a_lease_made_shorter_and_not_by_one_made_longer(
    rig: ServiceRig,
) -> None:
    await rig.add(b"a")
    polled = await rig.poll_now(lease_ms=1000)
    rig.service.next_due_in_ms()
    before = rig.sweeper_wakes

    await rig.service.items.extend(rig.queue, [polled.lease_id], [5000])
    assert rig.sweeper_wakes == before
    await rig.service.items.extend(rig.queue, [polled.lease_id], [200])

    assert rig.sweeper_wakes == before + 1
    assert rig.service.next_due_in_ms() == 200


@on_service()
async def test_sweeper_is_woken_by_the_lease_of_a_poll_that_waited(rig: ServiceRig) -> None:
    rig.service.next_due_in_ms()
    task = await rig.waiting_poll(lease_ms=LEASE_MS)

    await rig.add(b"a")

    assert (await task).ids
    assert rig.sweeper_wakes == 1
    assert rig.service.next_due_in_ms() == LEASE_MS


@on_service()
async def test_sweep_of_what_the_store_refused_is_due_again_after_a_while(
    rig: ServiceRig,
) -> None:
    """Nothing else is needed for it: the time is on the agenda."""
    await rig.add(b"a", delay_ms=100)
    rig.clock.advance(100)
    with pytest.MonkeyPatch.context() as fault:
        fault.setattr(rig.store, "write", refuse_write)
        with pytest.raises(Unavailable):
            rig.service.sweep()

    assert rig.service.next_due_in_ms() == STORE_RETRY_MS
    rig.clock.advance(STORE_RETRY_MS)
    assert rig.service.sweep()
    assert rig.service.queues.stats(rig.queue).ready == 1


@on_service()
async def test_poll_that_waits_gets_what_expired_although_the_store_refused_the_rest_of_the_sweep(
    rig: ServiceRig,
) -> None:
    """A sweep writes several times: what it did before it was refused is done, and must be told."""
    done_id, *ids = await rig.add(b"done", b"expiring")
    done = await rig.poll_now()
    await rig.poll_now(lease_ms=100)
    task = await rig.waiting_poll()
    await rig.complete(done)
    await rig.service.results.ack_results(
        rig.queue, "reader", 1
    )  # so that there is a result to delete
    rig.clock.advance(100)
    write, left = rig.store.write, 1

    def refuse_all_but_one(batch: Batch) -> None:
        nonlocal left
        if not left:
            raise Unavailable("the disk is full")
        left -= 1
        write(batch)

    with pytest.MonkeyPatch.context() as fault:
        fault.setattr(rig.store, "write", refuse_all_but_one)
        with pytest.raises(Unavailable):
            rig.service.sweep()
    rig.clock.advance(STORE_RETRY_MS)
    before_ms = rig.clock.now_ms()
    while rig.service.sweep():
        pass

    assert done_id in done.ids
    assert (await task).ids == ids
    assert rig.clock.now_ms() == before_ms
