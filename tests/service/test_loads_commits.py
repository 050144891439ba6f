"""Commits of loads: they go on without their callers, and let others have their turn."""

import asyncio
from collections.abc import Callable

import pytest

from queueber.db.families import Family
from queueber.db.store.contract import Batch
from queueber.db.store.rocks import RocksStore
from queueber.engine.integrity.check_store import check_store
from queueber.errors import Aborted, InvalidArgument, NotFound, Unavailable
from queueber.limits import STORE_RETRY_MS
from queueber.model import LoadRef, LoadState, NewItems, Rows
from tests.support.dumps import dump
from tests.support.rig import refuse_write
from tests.support.service_loads import LOAD, PART, begin, commit, ready, stage, staged
from tests.support.service_rig import HeldSync, ServiceRig, on_service, run_on_service
from tests.support.virtual_loop import turns


def refuse_after(write: Callable[[Batch], None], count: int) -> Callable[[Batch], None]:
    """Stands for `Store.write` on a disk that is full after so many writes."""
    left = [count]

    def refusing(batch: Batch) -> None:
        if not left[0]:
            refuse_write(batch)
        left[0] -= 1
        write(batch)

    return refusing


@on_service()
async def test_commit_goes_on_when_its_caller_has_gone(rig: ServiceRig) -> None:
    parts = await staged(rig, files=5)
    committing = await rig.waiting(rig.service.loads.commit_load(rig.queue, LOAD, parts))

    committing.cancel()
    await turns(20)

    assert committing.cancelled()
    assert ready(rig) == 50
    assert rig.admission.calls == 0
    assert (await begin(rig)).state is LoadState.COMMITTED


@on_service()
async def test_commit_that_is_asked_for_meanwhile_waits_for_the_same(rig: ServiceRig) -> None:
    parts = await staged(rig, files=5)
    first = await rig.waiting(rig.service.loads.commit_load(rig.queue, LOAD, parts))
    second = await rig.waiting(rig.service.loads.commit_load(rig.queue, LOAD, []))
    first.cancel()

    committed = await second

    assert committed.rows == ready(rig) == 50
    assert rig.service.loads._commits == {}


@on_service()
async def test_calls_are_served_between_the_steps_of_a_commit_and_see_nothing_of_it(
    rig: ServiceRig,
) -> None:
    parts = await staged(rig, files=20)
    committing = rig.begin(rig.service.loads.commit_load(rig.queue, LOAD, parts))

    served = 0
    while True:
        await turns(1)
        if committing.done():
            break
        await rig.add(b"meanwhile")
        served += 1
        found = ready(rig)
        assert found in (served, served + 200)
        if found > served:
            break
        state = rig.service.loads.list_loads(rig.queue)[0].state
        assert state in (LoadState.STAGING, LoadState.COMMITTING)
    await committing

    assert served >= 15, "the commit left no room for others"
    assert ready(rig) == served + 200
    assert check_store(rig.store) == []


@on_service()
async def test_polls_that_wait_are_served_by_a_commit(rig: ServiceRig) -> None:
    waiting = await rig.waiting_poll(4)

    await commit(rig, await staged(rig, rows=4))

    found = [each[:6] for each in (await waiting).contents]
    assert found == [b"000000", b"000001", b"000002", b"000003"]


@on_service()
async def test_whoever_waits_for_the_batch_of_a_load_is_told_when_its_items_have_ended(
    rig: ServiceRig,
) -> None:
    parts = await staged(rig, rows=2, batch="b")
    waiting = await rig.waiting(rig.service.results.wait_for_batch(rig.queue, "b", 30_000))

    await commit(rig, parts)
    await turns()
    assert not waiting.done()
    await rig.complete(await rig.poll_now(2))

    assert (await waiting).done == 2


@on_service()
async def test_nothing_is_added_to_a_load_that_is_being_committed(rig: ServiceRig) -> None:
    committing = await rig.waiting(
        rig.service.loads.commit_load(rig.queue, LOAD, await staged(rig, files=5))
    )

    for call in (
        lambda: rig.service.loads.stage_file(rig.queue, LOAD, PART, "a.sst", 0, b"x"),
        lambda: rig.service.loads.abort_load(rig.queue, LOAD),
    ):
        with pytest.raises(Aborted, match="'load' is being committed"):
            call()

    assert (await committing).rows == 50


@on_service()
async def test_two_loads_of_a_queue_are_committed_one_after_the_other(rig: ServiceRig) -> None:
    """Each must see the other's keys."""
    refs = [LoadRef("one"), LoadRef("two")]
    for ref in refs:
        rows = Rows([b"x"] * 600, keys=[f"key-{n}" for n in range(600)])
        await stage(rig, await begin(rig, ref), PART, rows)

    first, second = await asyncio.gather(*[commit(rig, [PART], ref) for ref in refs])

    assert [(each.rows, each.duplicates) for each in (first, second)] == [(600, 0), (0, 600)]
    assert ready(rig) == 600
    assert check_store(rig.store) == []


@on_service()
async def test_commit_that_is_refused_leaves_the_load_as_it_was(rig: ServiceRig) -> None:
    parts = await staged(rig)
    before = dump(rig.store)

    with pytest.raises(InvalidArgument, match="two attempts at one partition"):
        await commit(rig, [*parts, *parts])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rig.store, "write", refuse_write)
        with pytest.raises(Unavailable, match="full"):
            await commit(rig, parts)

    assert dump(rig.store) == before
    assert rig.service.loads.list_loads(rig.queue)[0].state is LoadState.STAGING
    assert (await commit(rig, parts)).rows == 10


# --- the store refuses what must be ---------------------------------------------------------------


@on_service()
async def test_commit_goes_on_once_the_disk_has_room_again(rig: ServiceRig) -> None:
    parts = await staged(rig, files=3)
    start_ms = rig.clock.now_ms()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rig.store, "write", refuse_after(rig.store.write, 1))
        committing = rig.begin(rig.service.loads.commit_load(rig.queue, LOAD, parts))
        while rig.clock.now_ms() < start_ms + 3 * STORE_RETRY_MS:
            await asyncio.sleep(STORE_RETRY_MS / 1000)
            assert not committing.done()
            assert rig.service.loads.list_loads(rig.queue)[0].state is LoadState.COMMITTING
            assert ready(rig) == 0

    assert (await committing).rows == ready(rig) == 30
    assert check_store(rig.store) == []


class NoRoom:
    """A family on a disk on which RocksDB cannot even take note of a file."""

    def __init__(self, family: object) -> None:
        self._family = family

    def __getattr__(self, name: str) -> object:
        return getattr(self._family, name)

    def ingest_external_file(self, *arguments: object) -> None:
        raise RuntimeError("IO error: No space left on device: while appending to MANIFEST")


@on_service()
async def test_commit_whose_files_find_no_room_goes_on_when_there_is_some(rig: ServiceRig) -> None:
    parts = await staged(rig, files=3)
    assert isinstance(rig.store, RocksStore)
    families = rig.store._families
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(families, Family.ITEMS, NoRoom(families[Family.ITEMS]))
        committing = rig.begin(rig.service.loads.commit_load(rig.queue, LOAD, parts))
        await asyncio.sleep(3 * STORE_RETRY_MS / 1000)
        assert not committing.done()

    assert (await committing).rows == ready(rig) == 30
    assert check_store(rig.store) == []


@on_service()
async def test_commit_that_a_full_disk_keeps_from_its_end_is_finished_at_the_next_start(
    rig: ServiceRig,
) -> None:
    parts = await staged(rig, files=3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rig.store, "write", refuse_after(rig.store.write, 1))
        committing = await rig.waiting(rig.service.loads.commit_load(rig.queue, LOAD, parts))
        await asyncio.sleep(STORE_RETRY_MS / 1000)

        await rig.service.drain()

        with pytest.raises(Unavailable):
            await committing
    again = rig.restarted()
    assert ready(again) == 30
    assert (await commit(again, parts)).rows == 30
    assert check_store(rig.store) == []


# --- ends -----------------------------------------------------------------------------------------


@on_service()
async def test_server_that_stops_waits_for_a_commit_whose_caller_has_gone(rig: ServiceRig) -> None:
    parts = await staged(rig, files=20)
    committing = await rig.waiting(rig.service.loads.commit_load(rig.queue, LOAD, parts))
    committing.cancel()
    await turns(1)
    assert ready(rig) == 0

    await rig.service.drain()

    assert ready(rig) == 200


@on_service()
async def test_queue_that_is_deleted_ends_the_commit_of_its_load(rig: ServiceRig) -> None:
    rig.queue = await rig.service.queues.open_queue("doomed", rig.session, must_exist=False)
    parts = await staged(rig, files=20)
    committing = await rig.waiting(rig.service.loads.commit_load(rig.queue, LOAD, parts))

    assert await rig.service.queues.delete_queue("doomed", rig.session)

    with pytest.raises(NotFound, match="was deleted"):
        await committing
    assert check_store(rig.store) == []


def test_commit_is_answered_once_it_is_durable_and_the_intent_before_any_file() -> None:
    sync = HeldSync()

    async def body(rig: ServiceRig) -> None:
        with rig.loop.time_stands_still():
            staging = rig.begin(staged(rig, rows=5))
            for count in (1, 2):
                await sync.wait_begun(count)
                sync.let()
            parts = await staging
            committing = rig.begin(rig.service.loads.commit_load(rig.queue, LOAD, parts))

            await sync.wait_begun(3)
            await turns(20)
            assert (ready(rig), dump(rig.store)["items"]) == (0, []), "the intent is not durable"
            sync.let()
            await sync.wait_begun(4)
            await turns(20)
            assert ready(rig) == 5
            assert not committing.done(), "the end is not durable"
            sync.let()
            assert (await committing).rows == 5

    run_on_service(body, sync=sync)


@on_service()
async def test_adds_with_keys_are_told_to_come_back_while_keys_are_looked_through(
    rig: ServiceRig,
) -> None:
    rows = Rows([b"x"] * 2000, keys=[f"key-{n}" for n in range(2000)])
    await stage(rig, await begin(rig), PART, rows)
    committing = await rig.waiting(rig.service.loads.commit_load(rig.queue, LOAD, [PART]))

    with pytest.raises(Unavailable, match="load"):
        rig.service.items.add(rig.queue, NewItems([b"x"], keys=["key-1"]))
    await rig.add(b"without a key")

    assert (await committing).rows == 2000
    again = await rig.service.items.add(rig.queue, NewItems([b"x"], keys=["key-1"]))
    assert list(again.duplicates) == [True]
    assert check_store(rig.store) == []
