"""wait_batch: the receipt as soon as the batch is complete, however its last item ended."""

from collections.abc import Awaitable, Callable

import pytest

from queueber.errors import NotFound
from queueber.model import ItemState, Polled, QueueSettings, Receipt
from tests.support.service_rig import LEASE_MS, ServiceRig, limits, on_service, run_on_service

BATCH = "fan-out"
OURS = object()


def summed(receipt: Receipt) -> tuple[int, int, int, int, bool]:
    """Added, done, dead, live, and whether it is complete."""
    return receipt.added, receipt.done, receipt.dead, receipt.live, receipt.complete


# --- at once --------------------------------------------------------------------------------------


@on_service()
async def test_wait_batch_of_a_complete_batch_answers_at_once(rig: ServiceRig) -> None:
    await rig.add(b"a", b"b", batch=BATCH)
    await rig.complete(await rig.poll_now(2))
    before_ms = rig.clock.now_ms()

    receipt = await rig.begin(rig.service.results.wait_for_batch(rig.queue, BATCH, 1000))

    assert summed(receipt) == (2, 2, 0, 0, True)
    assert receipt.done_digest == receipt.added_digest
    assert receipt == await rig.service.results.receipt(rig.queue, BATCH)
    assert rig.clock.now_ms() == before_ms


@on_service()
async def test_wait_batch_that_may_not_wait_answers_as_it_is_at_once(rig: ServiceRig) -> None:
    await rig.add(b"a", batch=BATCH)
    before_ms = rig.clock.now_ms()

    receipt = await rig.begin(rig.service.results.wait_for_batch(rig.queue, BATCH, 0))

    assert summed(receipt) == (1, 0, 0, 1, False)
    assert rig.clock.now_ms() == before_ms


@on_service()
async def test_batch_that_is_unknown_is_not_found_at_once(rig: ServiceRig) -> None:
    await rig.add(b"a", batch="another")

    with pytest.raises(NotFound, match="'default' knows no batch 'fan-out'"):
        rig.service.results.wait_for_batch(rig.queue, BATCH, 1000)
    with pytest.raises(NotFound, match="'default' knows no batch 'fan-out'"):
        rig.service.results.receipt(rig.queue, BATCH)


@on_service()
async def test_wait_batch_of_a_batch_of_another_queue_is_not_found(rig: ServiceRig) -> None:
    await rig.add(b"a", batch=BATCH)
    other = await rig.service.queues.open_queue("other", rig.session, must_exist=False)

    with pytest.raises(NotFound, match="'other' knows no batch"):
        rig.service.results.wait_for_batch(other, BATCH, 1000)


# --- when the last item ends ----------------------------------------------------------------------

End = Callable[[ServiceRig, Polled], Awaitable[object]]


async def _expire(rig: ServiceRig, polled: Polled) -> None:
    rig.clock.advance(LEASE_MS)
    assert rig.service.sweep()


async def _expire_under_a_poll(rig: ServiceRig, polled: Polled) -> None:
    rig.clock.advance(LEASE_MS)
    assert not (await rig.poll_now()).ids


async def _lose_the_connection(rig: ServiceRig, polled: Polled) -> None:
    rig.service.bound_leases.connection_ended(OURS)


ENDS: dict[str, tuple[End, int, int]] = {
    "complete": (lambda rig, polled: rig.complete(polled), 2, 0),
    "remove": (
        lambda rig, polled: rig.service.items.remove(rig.queue, polled.ids, [polled.lease_id]),
        2,
        0,
    ),
    "fail": (lambda rig, polled: rig.fail(polled), 1, 1),
    "expire in a sweep": (_expire, 1, 1),
    "expire under a poll": (_expire_under_a_poll, 1, 1),
    "connection ended": (_lose_the_connection, 1, 1),
    "cancel": (lambda rig, polled: rig.service.items.cancel(rig.queue, polled.ids), 1, 1),
    "purge": (lambda rig, _: rig.service.items.purge(rig.queue, ItemState.LEASED, 0), 1, 1),
}
"""How the last item ends, and how many are done and dead then."""


@pytest.mark.parametrize("name", ENDS)
def test_wait_batch_answers_when_its_last_item_ends(name: str) -> None:
    end, done, dead = ENDS[name]

    async def body(rig: ServiceRig) -> None:
        await rig.service.queues.configure_queue(
            "default", QueueSettings(attempts_max=1), rig.session
        )
        await rig.add(b"first", b"last", batch=BATCH)
        first, last = await rig.poll_now(), await rig.poll_now(connection=OURS)
        task = await rig.waiting(rig.service.results.wait_for_batch(rig.queue, BATCH, 10**9))
        assert await rig.complete(first) == [True]
        assert not task.done()

        await end(rig, last)
        ended_at_ms = rig.clock.now_ms()

        assert summed(await task) == (2, done, dead, 0, True)
        assert rig.clock.now_ms() == ended_at_ms
        assert rig.loop.timers() == 0

    # The longest wait is longer than the lease.
    run_on_service(body, limits(poll_wait_ms_max=2 * LEASE_MS))


@pytest.mark.parametrize("delay_ms", [0, 500], ids=["ready", "delayed"])
@pytest.mark.parametrize("verb", ["cancel", "purge"])
def test_wait_batch_answers_when_its_last_item_goes_before_anyone_had_it(
    verb: str, delay_ms: int
) -> None:
    state = ItemState.DELAYED if delay_ms else ItemState.READY

    async def body(rig: ServiceRig) -> None:
        ids = await rig.add(b"a", batch=BATCH, delay_ms=delay_ms)
        task = await rig.waiting(rig.service.results.wait_for_batch(rig.queue, BATCH, 1000))
        before_ms = rig.clock.now_ms()

        if verb == "cancel":
            await rig.service.items.cancel(rig.queue, ids)
        else:
            await rig.service.items.purge(rig.queue, state, 0)

        assert summed(await task) == (1, 0, 1, 0, True)
        assert rig.clock.now_ms() == before_ms

    run_on_service(body)


@on_service()
async def test_wait_batch_through_the_sweeper_answers_when_the_last_lease_runs_out(
    rig: ServiceRig,
) -> None:
    await rig.service.queues.configure_queue("default", QueueSettings(attempts_max=1), rig.session)
    async with rig.sweeper():
        await rig.add(b"a", batch=BATCH)
        await rig.poll_now(lease_ms=777)
        before_ms = rig.clock.now_ms()

        receipt = await rig.begin(rig.service.results.wait_for_batch(rig.queue, BATCH, 10_000))

        assert summed(receipt) == (1, 0, 1, 0, True)
        assert rig.clock.now_ms() == before_ms + 777


@on_service()
async def test_wait_batch_of_many_callers_answers_all_and_those_of_other_batches_wait_on(
    rig: ServiceRig,
) -> None:
    await rig.add(b"a", batch=BATCH)
    await rig.add(b"b", batch="another")
    tasks = [
        await rig.waiting(rig.service.results.wait_for_batch(rig.queue, BATCH, 1000))
        for _ in range(3)
    ]
    unconcerned = await rig.waiting(rig.service.results.wait_for_batch(rig.queue, "another", 1000))
    before_ms = rig.clock.now_ms()

    await rig.complete(await rig.poll_now())

    assert [summed(await task) for task in tasks] == [(1, 1, 0, 0, True)] * 3
    assert rig.clock.now_ms() == before_ms
    assert not unconcerned.done()
    assert summed(await unconcerned) == (1, 0, 0, 1, False)


@on_service()
async def test_wait_batch_of_items_that_only_come_back_waits_on(rig: ServiceRig) -> None:
    """Neither a failure with attempts left nor a release ends an item."""
    await rig.add(b"a", b"b", batch=BATCH)
    failing, releasing = await rig.poll_now(), await rig.poll_now()
    task = await rig.waiting(rig.service.results.wait_for_batch(rig.queue, BATCH, 1000))

    await rig.fail(failing)
    await rig.service.items.release(rig.queue, releasing.ids, [releasing.lease_id])

    assert summed(await task) == (2, 0, 0, 2, False)


@on_service()
async def test_wait_batch_after_a_redrive_waits_for_the_second_end(rig: ServiceRig) -> None:
    await rig.service.queues.configure_queue("default", QueueSettings(attempts_max=1), rig.session)
    await rig.add(b"a", batch=BATCH)
    await rig.fail(await rig.poll_now())
    assert (await rig.service.results.receipt(rig.queue, BATCH)).complete
    await rig.service.items.redrive(rig.queue, [], 0)

    task = await rig.waiting(rig.service.results.wait_for_batch(rig.queue, BATCH, 1000))
    await rig.complete(await rig.poll_now())

    assert summed(await task) == (1, 1, 0, 0, True)
