"""Leases that are bound to a connection end with it, and no others do."""

import asyncio

from queueber.engine.integrity.check_store import check_store
from queueber.model import NOTHING_POLLED, ItemState
from tests.support.dumps import dump
from tests.support.service_rig import HeldSync, ServiceRig, on_service, run_on_service

OURS, THEIRS = object(), object()


def charges(rig: ServiceRig) -> dict[bytes, tuple[int, int]]:
    """Of each ready item, how many attempts failed and how large its group may be."""
    items, _ = rig.service.items.peek(rig.queue, ItemState.READY, b"", 0)
    return {item.id: (item.attempts, item.group_max) for item in items}


@on_service()
async def test_connection_ended_expires_the_leases_bound_to_it_in_every_queue(
    rig: ServiceRig,
) -> None:
    other = await rig.service.queues.open_queue("other", rig.session, must_exist=False)
    await rig.add(b"ours", b"theirs", b"nobody's")
    await rig.add(b"ours", b"theirs", queue=other)
    before_ms = rig.clock.now_ms()
    ours = await rig.poll_now(connection=OURS)
    theirs, unbound = await rig.poll_now(connection=THEIRS), await rig.poll_now()
    ours_of_other = await rig.poll_now(connection=OURS, queue=other)
    await rig.poll_now(connection=THEIRS, queue=other)

    rig.service.bound_leases.connection_ended(OURS)

    assert (await rig.poll_now(9)).ids == ours.ids
    assert (await rig.poll_now(9, queue=other)).ids == ours_of_other.ids
    assert rig.clock.now_ms() == before_ms
    assert await rig.complete(theirs) == [True]
    assert await rig.complete(unbound) == [True]
    assert await rig.complete(ours) == [False]
    assert check_store(rig.store) == []


@on_service()
async def test_connection_ended_with_one_item_charges_it(rig: ServiceRig) -> None:
    """Nothing else can be why its holder is gone."""
    ids = await rig.add(b"a")
    await rig.poll_now(connection=OURS)

    rig.service.bound_leases.connection_ended(OURS)

    assert charges(rig) == {ids[0]: (1, 0)}
    stats = rig.service.queues.stats(rig.queue)
    assert (stats.expired_total, stats.failed_total, stats.released_total) == (1, 1, 0)


@on_service()
async def test_connection_ended_with_several_items_counts_all_its_leases_as_one(
    rig: ServiceRig,
) -> None:
    """Any one of them may be why its holder is gone, whatever lease it was in."""
    ids = await rig.add(*[b"x"] * 7)
    await rig.poll_now(1, connection=OURS)
    await rig.poll_now(4, connection=OURS)
    await rig.service.polls.poll_many(rig.queue, [1, 1, 1], lease_ms=1000, connection=OURS)

    rig.service.bound_leases.connection_ended(OURS)

    assert charges(rig) == dict.fromkeys(ids, (0, 3))
    stats = rig.service.queues.stats(rig.queue)
    assert (stats.expired_total, stats.failed_total, stats.leases) == (7, 0, 0)


@on_service()
async def test_connection_ended_counts_all_queues_together(rig: ServiceRig) -> None:
    """An item of either queue may be why its holder is gone."""
    other = await rig.service.queues.open_queue("other", rig.session, must_exist=False)
    ids = await rig.add(b"a")
    await rig.add(b"b", queue=other)
    await rig.poll_now(connection=OURS)
    await rig.poll_now(connection=OURS, queue=other)

    rig.service.bound_leases.connection_ended(OURS)

    assert charges(rig) == {ids[0]: (0, 1)}
    assert rig.service.queues.stats(other).failed_total == 0


@on_service()
async def test_connection_ended_expires_a_lease_that_was_extended(rig: ServiceRig) -> None:
    await rig.add(b"a")
    polled = await rig.poll_now(connection=OURS)
    await rig.service.items.extend(rig.queue, [polled.lease_id], [99_000])

    rig.service.bound_leases.connection_ended(OURS)

    assert (await rig.poll_now()).ids == polled.ids


@on_service()
async def test_connection_ended_leaves_alone_what_ended_before(rig: ServiceRig) -> None:
    """Completed, given back, or expired and with somebody else: its charge is not doubled."""
    await rig.add(b"done", b"released", b"expired")
    done = await rig.poll_now(connection=OURS)
    released = await rig.poll_now(connection=OURS)
    expired = await rig.poll_now(connection=OURS, lease_ms=10)
    await rig.complete(done)
    await rig.service.items.release(rig.queue, released.ids, [released.lease_id])
    rig.clock.advance(10)
    again = await rig.poll_now(2)
    before = dump(rig.store)

    rig.service.bound_leases.connection_ended(OURS)

    assert set(again.ids) == {*released.ids, *expired.ids}
    assert dump(rig.store) == before
    assert await rig.complete(again) == [True, True]


@on_service()
async def test_connection_ended_again_or_without_a_lease_changes_nothing(rig: ServiceRig) -> None:
    ids = await rig.add(b"a")
    await rig.poll_now(connection=OURS)
    rig.service.bound_leases.connection_ended(OURS)
    again = await rig.poll_now()
    before = dump(rig.store)

    rig.service.bound_leases.connection_ended(OURS)
    rig.service.bound_leases.connection_ended(object())

    assert again.ids == ids
    assert dump(rig.store) == before


# --- polls that wait ------------------------------------------------------------------------------


@on_service()
async def test_poll_that_waited_is_bound_to_its_connection(rig: ServiceRig) -> None:
    bound, unbound = await rig.waiting_poll(connection=OURS), await rig.waiting_poll()
    await rig.add(b"ours", b"nobody's")
    polled = await bound

    rig.service.bound_leases.connection_ended(OURS)

    assert charges(rig) == {polled.ids[0]: (1, 0)}
    assert await rig.complete(await unbound) == [True]


@on_service()
async def test_connection_ended_serves_a_poll_that_waits_at_once(rig: ServiceRig) -> None:
    ids = await rig.add(b"a")
    await rig.poll_now(connection=OURS)
    task = await rig.waiting_poll(connection=THEIRS)
    before_ms = rig.clock.now_ms()

    rig.service.bound_leases.connection_ended(OURS)

    assert (await task).ids == ids
    assert rig.clock.now_ms() == before_ms
    rig.service.bound_leases.connection_ended(THEIRS)
    assert charges(rig) == {ids[0]: (2, 0)}


@on_service()
async def test_poll_cancelled_before_its_connection_ended_is_not_charged(rig: ServiceRig) -> None:
    task = await rig.waiting_poll(connection=OURS)
    added = asyncio.ensure_future(rig.add(b"a"))
    await asyncio.sleep(0)
    task.cancel()
    ids = await added
    await asyncio.wait([task])

    rig.service.bound_leases.connection_ended(OURS)

    assert task.cancelled()
    assert charges(rig) == {ids[0]: (0, 0)}


def test_poll_cancelled_while_it_waits_for_the_disk_is_not_charged_with_its_connection() -> None:
    """What the adapter sees of a lost connection: its calls are cancelled first."""
    sync = HeldSync()

    async def body(rig: ServiceRig) -> None:
        with rig.loop.time_stands_still():
            sync.let()
            ids = await rig.add(b"a", b"b")
            task = rig.begin_poll(2, connection=OURS)
            await sync.wait_begun(2)

            task.cancel()
            await asyncio.wait([task])
            rig.service.bound_leases.connection_ended(OURS)

            assert charges(rig) == dict.fromkeys(ids, (0, 0))

    run_on_service(body, sync=sync)


@on_service()
async def test_connection_ended_of_a_paused_queue_serves_nobody_before_it_is_resumed(
    rig: ServiceRig,
) -> None:
    ids = await rig.add(b"a")
    await rig.poll_now(connection=OURS)
    await rig.service.queues.pause(rig.queue, 0)
    task = await rig.waiting_poll()

    rig.service.bound_leases.connection_ended(OURS)
    assert await rig.poll_now() == NOTHING_POLLED
    await rig.service.queues.resume(rig.queue)

    assert (await task).ids == ids
