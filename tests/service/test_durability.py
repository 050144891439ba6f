"""Nothing is answered before it is durable: every verb, against a sync that the test holds."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import pytest

from queueber.engine.integrity.check_store import check_store
from queueber.errors import Internal
from queueber.model import ItemState, NewItems, QueueSettings
from queueber.service.service import Service
from queueber.service.session import QueueHandle, Session
from tests.support.dumps import dump
from tests.support.service_rig import HeldSync, ServiceRig, run_on_service
from tests.support.virtual_loop import turns

T = TypeVar("T")

BATCH = "fan-out"


@dataclass(frozen=True)
class Prepared:
    """A queue with an item that is leased and others that are ready, dead and done."""

    rig: ServiceRig
    ids: list[bytes]
    leases: list[bytes]
    ready: list[bytes]

    @property
    def service(self) -> Service:
        return self.rig.service

    @property
    def queue(self) -> QueueHandle:
        return self.rig.queue

    @property
    def session(self) -> Session:
        return self.rig.session


Verb = Callable[[Prepared], Awaitable[object]]

WRITES: dict[str, Verb] = {
    "add": lambda p: p.service.items.add(p.queue, NewItems([b"x"])),
    "poll": lambda p: p.service.polls.poll(p.queue, 1, lease_ms=9, wait_ms=0),
    "poll_many": lambda p: p.service.polls.poll_many(p.queue, [1], lease_ms=9),
    "remove": lambda p: p.service.items.remove(p.queue, p.ids, p.leases),
    "complete": lambda p: p.service.items.complete(p.queue, p.ids, p.leases, [b"r"]),
    "fail": lambda p: p.service.items.fail(p.queue, p.ids, p.leases, ["why"], [0]),
    "release": lambda p: p.service.items.release(p.queue, p.ids, p.leases),
    "extend": lambda p: p.service.items.extend(p.queue, p.leases, [9]),
    "cancel": lambda p: p.service.items.cancel(p.queue, p.ids),
    "reschedule": lambda p: p.service.items.reschedule(p.queue, p.ready, 5),
    "purge": lambda p: p.service.items.purge(p.queue, ItemState.READY, 0),
    "redrive": lambda p: p.service.items.redrive(p.queue, [], 0),
    "pause": lambda p: p.service.queues.pause(p.queue, 0),
    "resume": lambda p: p.service.queues.resume(p.service.queues.handle("paused", p.session)),
    "ack_results": lambda p: p.service.results.ack_results(p.queue, "reader", 1),
    "drop_reader": lambda p: p.service.results.drop_reader(p.queue, "idle"),
    "queue": lambda p: p.service.queues.open_queue("new", p.session, must_exist=False),
    "create_queue": lambda p: p.service.queues.create_queue("new", QueueSettings(), p.session),
    "configure_queue": lambda p: p.service.queues.configure_queue(
        "paused", QueueSettings(items_max=1), p.session
    ),
    "delete_queue": lambda p: p.service.queues.delete_queue("paused", p.session),
}

SHARED = {"add", "poll", "poll_many", "remove", "complete", "fail", "release", "extend"}
"""Those that wait for the sync under way to end, and are then written with others of their kind."""

VERBS: dict[str, Verb] = {
    **WRITES,
    "receipt": lambda p: p.service.results.receipt(p.queue, BATCH),
    "wait_batch": lambda p: p.service.results.wait_for_batch(p.queue, BATCH, 0),
    "read_results": lambda p: p.service.results.read_results(
        p.queue, reader="idle", offset=0, limit=0, wait_ms=0
    ),
}
"""Those that only read tell of what others wrote, so they wait for it."""


async def prepared(rig: ServiceRig, sync: HeldSync) -> Prepared:
    """All of it is synced."""

    async def synced(call: Awaitable[T]) -> T:
        sync.let()
        return await call

    paused = await synced(rig.service.queues.open_queue("paused", rig.session, must_exist=False))
    await synced(rig.service.queues.pause(paused, 0))
    await synced(
        rig.service.queues.configure_queue("default", QueueSettings(attempts_max=1), rig.session)
    )
    added = await synced(rig.service.items.add(rig.queue, NewItems([b"x"] * 4, batch=BATCH)))
    dead, done, held = [await synced(rig.poll_now()) for _ in range(3)]
    await synced(rig.fail(dead))
    await synced(rig.complete(done))
    await synced(rig.service.results.ack_results(rig.queue, "idle", 0))
    return Prepared(rig, list(held.ids), [held.lease_id], list(added.ids[3:]))


@pytest.mark.parametrize("verb", VERBS)
def test_verb_is_not_answered_before_a_sync_that_began_after_its_write(verb: str) -> None:
    sync = HeldSync()

    async def body(rig: ServiceRig) -> None:
        with rig.loop.time_stands_still():
            ready = await prepared(rig, sync)
            begun = sync.begun
            earlier = rig.begin(rig.service.items.add(rig.queue, NewItems([b"earlier"])))
            await sync.wait_begun(begun + 1)
            before = dump(rig.store)

            call = rig.begin(VERBS[verb](ready))
            await turns()
            assert (dump(rig.store) != before) == (verb in WRITES and verb not in SHARED)
            sync.let()  # the sync that had begun before the call
            await earlier
            await sync.wait_begun(begun + 2)
            assert (dump(rig.store) != before) == (verb in WRITES)
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
            ready = await prepared(rig, sync)
            begun = sync.begun
            call = rig.begin(VERBS[verb](ready))
            await sync.wait_begun(begun + 1)

            sync.fail(OSError("the disk is gone"))

            with pytest.raises(Internal, match="the disk is gone"):
                await call
            with pytest.raises(Internal, match="the disk is gone"):
                await rig.service.items.add(rig.queue, NewItems([b"later"]))
            assert len(sync.failures) == 1

    run_on_service(body, sync=sync)


def test_poll_whose_sync_fails_keeps_its_lease() -> None:
    """Whether the lease is on the disk nobody knows: it is not taken back, it runs out."""
    sync = HeldSync()

    async def body(rig: ServiceRig) -> None:
        with rig.loop.time_stands_still():
            sync.let()
            await rig.service.items.add(rig.queue, NewItems([b"a"]))
            call = rig.begin_poll(1, wait_ms=0)
            await sync.wait_begun(2)
            sync.fail(OSError("broken"))
            with pytest.raises(Internal):
                await call

            assert rig.service.queues.stats(rig.queue).leased == 1

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
            adding = rig.begin(rig.service.items.add(rig.queue, NewItems([b"a"])))
            await sync.wait_begun(1)
            await turns(10)
            assert not polling.done()
            assert not adding.done()
            sync.let()

            assert (await polling).ids == (await adding).ids
            assert sync.begun == 1

    run_on_service(body, sync=sync)


def test_many_concurrent_calls_share_a_few_syncs() -> None:
    sync = HeldSync()

    async def body(rig: ServiceRig) -> None:
        with rig.loop.time_stands_still():
            calls = [
                rig.begin(rig.service.items.add(rig.queue, NewItems([b"x"]))) for _ in range(200)
            ]
            sync.let_all()
            await asyncio.gather(*calls)

            assert sync.begun <= 2

    run_on_service(body, sync=sync)


def test_add_cancelled_while_it_waits_for_the_commit_has_happened() -> None:
    """There is no taking back what a poll may have seen."""
    sync = HeldSync()

    async def body(rig: ServiceRig) -> None:
        with rig.loop.time_stands_still():
            task = rig.begin(rig.service.items.add(rig.queue, NewItems([b"a"])))
            await sync.wait_begun(1)

            task.cancel()
            await asyncio.wait([task])

            stats = rig.service.queues.stats(rig.queue)
            assert (stats.ready, stats.added_total) == (1, 1)
            assert check_store(rig.store) == []

    run_on_service(body, sync=sync)
