"""Nothing is answered before it is durable: every verb, against a sync that the test holds."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from queueber.errors import Internal
from queueber.model import QueueSettings
from tests.support.service_rig import HeldSync, ServiceRig, run_on_service
from tests.support.virtual_loop import turns

Verb = Callable[[ServiceRig, bytes, bytes], Awaitable[object]]

VERBS: dict[str, Verb] = {
    "add": lambda rig, _, __: rig.service.add(rig.queue, [b"x"], []),
    "poll": lambda rig, _, __: rig.service.poll(rig.queue, 1, lease_ms=9, wait_ms=0),
    "poll_many": lambda rig, _, __: rig.service.poll_many(rig.queue, [1], lease_ms=9),
    "remove": lambda rig, item_id, lease: rig.service.remove(rig.queue, [item_id], [lease]),
    "extend": lambda rig, _, lease: rig.service.extend(rig.queue, [lease], [9]),
    "queue": lambda rig, _, __: rig.service.queue("new", must_exist=False),
    "create_queue": lambda rig, _, __: rig.service.create_queue("new", QueueSettings()),
    "configure_queue": lambda rig, _, __: rig.service.configure_queue("other", QueueSettings()),
    "delete_queue": lambda rig, _, __: rig.service.delete_queue("other"),
}


async def prepared(rig: ServiceRig, sync: HeldSync) -> tuple[bytes, bytes]:
    """A leased item, a ready one, and another queue; all of it synced."""
    calls: list[Awaitable[object]] = [
        rig.service.add(rig.queue, [b"held", b"ready"], []),
        rig.service.queue("other", must_exist=False),
    ]
    for call in calls:
        sync.let()
        await call
    sync.let()
    polled = await rig.begin_poll(1, wait_ms=0)
    return polled.ids[0], polled.lease_id


@pytest.mark.parametrize("verb", VERBS)
def test_verb_is_not_answered_before_a_sync_that_began_after_its_write(verb: str) -> None:
    sync = HeldSync()

    async def body(rig: ServiceRig) -> None:
        with rig.loop.time_stands_still():
            item_id, lease_id = await prepared(rig, sync)
            earlier = rig.begin(rig.service.add(rig.queue, [b"earlier"], []))
            await sync.wait_begun(4)

            call = rig.begin(VERBS[verb](rig, item_id, lease_id))
            await turns()
            sync.let()  # the sync that had begun before the call
            await earlier
            await sync.wait_begun(5)
            await turns(10)
            assert not call.done()
            sync.let()

            await call

    run_on_service(body, sync=sync)


@pytest.mark.parametrize("verb", VERBS)
def test_verb_whose_sync_fails_is_internal_and_so_is_every_later_one(verb: str) -> None:
    sync = HeldSync()

    async def body(rig: ServiceRig) -> None:
        with rig.loop.time_stands_still():
            item_id, lease_id = await prepared(rig, sync)
            call = rig.begin(VERBS[verb](rig, item_id, lease_id))
            await sync.wait_begun(4)

            sync.fail(OSError("the disk is gone"))

            with pytest.raises(Internal, match="the disk is gone"):
                await call
            with pytest.raises(Internal, match="the disk is gone"):
                await rig.service.add(rig.queue, [b"later"], [])
            assert len(sync.failures) == 1

    run_on_service(body, sync=sync)


def test_poll_whose_sync_fails_keeps_its_lease() -> None:
    """Whether the lease is on the disk nobody knows: it is not taken back, it runs out."""
    sync = HeldSync()

    async def body(rig: ServiceRig) -> None:
        with rig.loop.time_stands_still():
            sync.let()
            await rig.service.add(rig.queue, [b"a"], [])
            call = rig.begin_poll(1, wait_ms=0)
            await sync.wait_begun(2)
            sync.fail(OSError("broken"))
            with pytest.raises(Internal):
                await call

            assert rig.service.stats(rig.queue).in_progress == 1

    run_on_service(body, sync=sync)


def test_poll_that_finds_nothing_needs_no_sync() -> None:
    sync = HeldSync()

    async def body(rig: ServiceRig) -> None:
        polled = await rig.begin_poll(wait_ms=50)

        assert not polled.ids
        assert sync.begun == 0

    run_on_service(body, sync=sync)


def test_add_and_the_poll_that_it_wakes_share_a_sync() -> None:
    sync = HeldSync()

    async def body(rig: ServiceRig) -> None:
        polling = await rig.waiting_poll()
        with rig.loop.time_stands_still():
            adding = rig.begin(rig.service.add(rig.queue, [b"a"], []))
            await sync.wait_begun(1)
            await turns(10)
            assert not polling.done()
            assert not adding.done()
            sync.let()

            assert (await polling).ids == await adding
            assert sync.begun == 1

    run_on_service(body, sync=sync)


def test_many_concurrent_calls_share_a_few_syncs() -> None:
    sync = HeldSync()

    async def body(rig: ServiceRig) -> None:
        with rig.loop.time_stands_still():
            calls = [rig.begin(rig.service.add(rig.queue, [b"x"], [])) for _ in range(200)]
            sync.let_all()
            await asyncio.gather(*calls)

            assert sync.begun <= 2

    run_on_service(body, sync=sync)
