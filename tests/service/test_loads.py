"""Loads for many callers: begun, joined, staged, committed, dropped."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from queueber.db.records.loads import part_directory
from queueber.engine.integrity.check_store import check_store
from queueber.errors import (
    Aborted,
    InvalidArgument,
    NotFound,
    QueueberError,
    ResourceExhausted,
    Unavailable,
)
from queueber.ids import origin_of
from queueber.limits import DAY_MS, HOUR_MS, LOAD_TIMEOUT_MS, LOADS_MAX
from queueber.model import LoadRef, LoadState, NewItems, Origin, PartRef, QueueSettings
from tests.support.dumps import dump
from tests.support.loading import built_part
from tests.support.rig import refuse_write
from tests.support.service_loads import (
    LOAD,
    PART,
    begin,
    commit,
    contents,
    directories,
    files_of,
    ready,
    stage,
    staged,
)
from tests.support.service_rig import ServiceRig, on_service
from tests.support.virtual_loop import turns


@on_service()
async def test_load_is_begun_staged_and_committed(rig: ServiceRig) -> None:
    load = await begin(rig, batch="b")
    parts = [
        await stage(rig, load, PartRef(0, "first"), contents(3)),
        await stage(rig, load, PartRef(7, "second"), contents(2)),
    ]
    assert (ready(rig), rig.service.loads.list_loads(rig.queue)[0].rows) == (0, 5)
    assert not (await rig.service.results.receipt(rig.queue, "b")).complete

    committed = await commit(rig, parts)

    assert (committed.state, committed.rows, committed.batch) == (LoadState.COMMITTED, 5, "b")
    polled = await rig.poll_now(10)
    assert [origin_of(each) for each in polled.ids] == [(0, 0), (0, 1), (0, 2), (7, 0), (7, 1)]
    assert (await rig.service.results.receipt(rig.queue, "b")).added == 5
    assert rig.service.loads.list_loads(rig.queue) == []
    assert check_store(rig.store) == []


@on_service()
async def test_load_tells_all_that_the_builder_of_a_part_needs(rig: ServiceRig) -> None:
    await rig.service.queues.configure_queue(
        "default", QueueSettings(item_bytes_max=500), rig.session
    )

    load = await begin(rig)

    assert (load.state, load.ref, load.queue_number) == (LoadState.STAGING, LOAD, 1)
    assert load.expires_at_ms == rig.clock.now_ms() + LOAD_TIMEOUT_MS
    assert (load.item_bytes_max, load.dedup_window_ms) == (500, 600_000)
    assert len(load.id_head) == 9
    assert files_of(rig.store.loads_path) == {f"{load.id_head.hex()}/token": load.token}
    assert load.directory == str(rig.store.loads_path / load.id_head.hex())


@on_service()
async def test_whoever_begins_it_again_joins_it(rig: ServiceRig) -> None:
    first = await begin(rig, timeout_ms=5000)
    rig.clock.advance(1000)

    again = await begin(rig, timeout_ms=9000)

    assert again == replace(first, expires_at_ms=first.expires_at_ms + 1000)
    assert len(rig.service.loads.list_loads(rig.queue)) == 1


@on_service()
async def test_load_that_must_exist_is_joined_and_never_begun(rig: ServiceRig) -> None:
    ask = partial(
        rig.service.loads.begin_load, rig.queue, LOAD, batch="", timeout_ms=0, must_exist=True
    )
    with pytest.raises(NotFound, match="'load' is not under way in queue 'default'"):
        await ask()
    assert rig.service.loads.list_loads(rig.queue) == []

    begun = await begin(rig)
    assert await ask() == begun
    later = replace(LOAD, epoch=LOAD.epoch + 1)
    with pytest.raises(NotFound, match="not under way"):
        await rig.service.loads.begin_load(
            rig.queue, later, batch="", timeout_ms=0, must_exist=True
        )
    assert rig.service.loads.list_loads(rig.queue) == [begun]

    await commit(rig, [])
    assert (await ask()).state is LoadState.COMMITTED


@on_service()
async def test_committed_load_is_found_committed_and_its_commit_may_be_repeated(
    rig: ServiceRig,
) -> None:
    parts = await staged(rig)
    committed = await commit(rig, parts)

    assert await commit(rig, parts) == committed
    assert await begin(rig) == committed
    assert not await rig.service.loads.abort_load(rig.queue, LOAD)
    assert ready(rig) == committed.rows == 10


@on_service()
async def test_only_the_named_attempt_of_a_partition_counts(rig: ServiceRig) -> None:
    load = await begin(rig)
    await stage(rig, load, PartRef(0, "first"), contents(5))
    second = await stage(rig, load, PartRef(0, "second"), contents(5))

    await commit(rig, [second])

    assert ready(rig) == 5
    assert directories(rig) == [rig.service.loads.take_stale_stage()]


@on_service()
async def test_aborted_load_leaves_nothing_but_a_directory_to_be_removed(rig: ServiceRig) -> None:
    before = dump(rig.store)
    await staged(rig, batch="b")

    assert await rig.service.loads.abort_load(rig.queue, LOAD)

    assert rig.reclaimer_wakes > 0
    directory = rig.service.loads.take_stale_stage()
    assert directory is not None
    rig.service.loads.remove_stage(directory)
    assert (directories(rig), rig.service.loads.take_stale_stage()) == ([], None)
    assert {name: dump(rig.store)[name] for name in ("items", "loads")} == {
        name: before[name] for name in ("items", "loads")
    }
    with pytest.raises(NotFound, match="knows no batch 'b'"):
        rig.service.results.receipt(rig.queue, "b")
    with pytest.raises(NotFound, match=r"load: 'load' is not under way in queue 'default'"):
        await commit(rig, [PART])
    assert not await rig.service.loads.abort_load(rig.queue, LOAD)


@on_service()
async def test_a_later_epoch_drops_the_one_before(rig: ServiceRig) -> None:
    await staged(rig, LoadRef("load", 1), batch="old")
    await rig.add(b"x", batch="old")
    await rig.complete(await rig.poll_now())
    waiting = await rig.waiting(rig.service.results.wait_for_batch(rig.queue, "old", 10_000))

    second = await begin(rig, LoadRef("load", 2))

    await turns()
    assert waiting.done(), "the batch of the first epoch has ended with it"
    assert waiting.result().complete
    assert rig.reclaimer_wakes == 1
    assert [each.ref.epoch for each in rig.service.loads.list_loads(rig.queue)] == [
        second.ref.epoch
    ]
    with pytest.raises(Aborted, match="is in epoch 2, and epoch 1 is over"):
        await begin(rig, LoadRef("load", 1))


@on_service()
async def test_a_name_that_was_committed_is_loaded_again_in_a_later_epoch_only(
    rig: ServiceRig,
) -> None:
    await commit(rig, await staged(rig, LoadRef("load", 5)), LoadRef("load", 5))

    before = await begin(rig, LoadRef("load", 4))
    after = await begin(rig, LoadRef("load", 6))

    assert (before.state, after.state) == (LoadState.COMMITTED, LoadState.STAGING)


@on_service()
async def test_only_so_many_loads_are_under_way(rig: ServiceRig) -> None:
    for number in range(LOADS_MAX):
        await begin(rig, LoadRef(f"load-{number}"))
    before, held = dump(rig.store), directories(rig)

    with pytest.raises(ResourceExhausted, match=f"{LOADS_MAX} loads under way, the limit"):
        await begin(rig, LoadRef("one more"))

    assert (dump(rig.store), directories(rig)) == (before, held)
    assert len(rig.service.loads.list_loads(rig.queue)) == LOADS_MAX


# --- files ----------------------------------------------------------------------------------------


@on_service()
async def test_bytes_may_come_in_any_order_and_twice(rig: ServiceRig) -> None:
    load = await begin(rig)
    part, files = built_part(load, PART, contents(100))
    for name, held in files.items():
        for offset in (1000, 0, 1000, 500):
            chunk = held[offset : offset + 500] if offset < 1000 else held[offset:]
            rig.service.loads.stage_file(rig.queue, LOAD, PART, name, offset, chunk)

    await rig.service.loads.finish_part(rig.queue, LOAD, part)
    await rig.service.loads.finish_part(rig.queue, LOAD, part)
    await commit(rig, [PART])

    assert ready(rig) == 100


@on_service()
async def test_file_of_a_finished_part_is_not_changed_any_more(rig: ServiceRig) -> None:
    load = await begin(rig)
    part, files = built_part(load, PART, contents(5))
    await stage(rig, load, PART, contents(5))
    name, held = next(iter(files.items()))
    on_disk = rig.store.loads_path / load.id_head.hex() / part_directory(PART) / name
    before = on_disk.read_bytes()

    # A call that was repeated, and came late, is nothing to complain of.
    rig.service.loads.stage_file(rig.queue, LOAD, PART, name, 10, before[10:20])
    for offset, data in ((0, bytes(10)), (len(held), b"more")):
        with pytest.raises(Aborted, match=r"attempt 'first' at partition 0 is finished"):
            rig.service.loads.stage_file(rig.queue, LOAD, PART, name, offset, data)
    with pytest.raises(Aborted, match="stage it as another attempt"):
        rig.service.loads.stage_file(rig.queue, LOAD, PART, "other.sst", 0, b"x")

    assert on_disk.read_bytes() == before
    assert [each.name for each in part.files] == sorted(files)


@on_service()
async def test_part_whose_files_are_not_what_is_said_of_them_changes_nothing(
    rig: ServiceRig,
) -> None:
    load = await begin(rig)
    part, files = built_part(load, PART, contents(5))
    name, held = next(iter(files.items()))
    for each, its_bytes in files.items():
        rig.service.loads.stage_file(rig.queue, LOAD, PART, each, 0, its_bytes)
    before = dump(rig.store)

    rig.service.loads.stage_file(rig.queue, LOAD, PART, name, 0, bytes([held[0] ^ 1]))
    with pytest.raises(InvalidArgument, match=f"files: '{name}' does not have the announced check"):
        await rig.service.loads.finish_part(rig.queue, LOAD, part)
    with pytest.raises(InvalidArgument, match="files: those of items do not end with row 5"):
        rig.service.loads.finish_part(rig.queue, LOAD, replace(part, rows=6, delayed=1))
    with pytest.raises(InvalidArgument, match="attempt 'first' at partition 0 was not finished"):
        await commit(rig, [PART])

    assert dump(rig.store) == before
    rig.service.loads.stage_file(rig.queue, LOAD, PART, name, 0, held[:1])
    await rig.service.loads.finish_part(rig.queue, LOAD, part)
    await commit(rig, [PART])
    assert ready(rig) == 5


@on_service()
async def test_part_with_wrong_runs_is_refused_and_changes_nothing(rig: ServiceRig) -> None:
    load = await begin(rig)
    part, files = built_part(replace(load, batch_number=9), PART, contents(5))
    for name, held in files.items():
        rig.service.loads.stage_file(rig.queue, LOAD, PART, name, 0, held)
    before = dump(rig.store), directories(rig)

    with pytest.raises(InvalidArgument, match=r"visibility_index has a wrong run .* no new item"):
        await rig.service.loads.finish_part(rig.queue, LOAD, replace(part, digest=bytes(16)))

    assert (dump(rig.store), directories(rig)) == before
    await stage(rig, load, PartRef(0, "second"), contents(5))
    await commit(rig, [PartRef(0, "second")])
    assert ready(rig) == 5


class HeldThread(Executor):
    """Work that waits until the test lets it."""

    def __init__(self) -> None:
        self._work: list[tuple[Future[Any], Callable[[], Any]]] = []

    def submit(self, work: Callable[[], Any]) -> Future[Any]:  # type: ignore[override]
        self._work.append((Future(), work))
        return self._work[-1][0]

    def let_go(self) -> None:
        for future, work in self._work:
            try:
                future.set_result(work())
            except QueueberError as error:
                future.set_exception(error)


@on_service()
async def test_load_that_ends_while_its_part_is_checked_takes_no_part(rig: ServiceRig) -> None:
    background = HeldThread()
    again = rig.restarted(background)
    load = await begin(again)
    part, files = built_part(load, PART, contents(5))
    for name, held in files.items():
        again.service.loads.stage_file(again.queue, LOAD, PART, name, 0, held)
    finishing = [
        await again.waiting(again.service.loads.finish_part(again.queue, LOAD, part))
        for _ in range(2)
    ]
    with pytest.raises(Aborted, match="is finished"):
        again.service.loads.stage_file(again.queue, LOAD, PART, part.files[0].name, 0, b"x")

    assert await again.service.loads.abort_load(again.queue, LOAD)
    directory = again.service.loads.take_stale_stage()
    assert directory is not None
    again.service.loads.remove_stage(directory)
    background.let_go()

    for each in finishing:
        with pytest.raises(NotFound, match="is not under way"):
            await each
    assert check_store(rig.store) == []


@on_service()
async def test_load_that_is_begun_anew_while_a_part_is_checked_does_not_get_it(
    rig: ServiceRig,
) -> None:
    background = HeldThread()
    again = rig.restarted(background)
    load = await begin(again)
    part, files = built_part(load, PART, contents(5))
    for name, held in files.items():
        again.service.loads.stage_file(again.queue, LOAD, PART, name, 0, held)
    finishing = await again.waiting(again.service.loads.finish_part(again.queue, LOAD, part))

    assert await again.service.loads.abort_load(again.queue, LOAD)
    await begin(again)
    background.let_go()

    with pytest.raises(NotFound, match="was dropped meanwhile, and begun anew; join it"):
        await finishing
    assert again.service.loads.list_loads(again.queue)[0].rows == 0


# --- time -----------------------------------------------------------------------------------------


@on_service()
async def test_load_that_nobody_calls_is_dropped_and_its_files_with_it(rig: ServiceRig) -> None:
    load = await begin(rig, batch="b", timeout_ms=HOUR_MS)
    async with rig.sweeper():
        await asyncio.sleep(3599)
        await stage(rig, load, PART, contents(5))  # somebody calls: its time begins anew
        await asyncio.sleep(3599)
        assert len(rig.service.loads.list_loads(rig.queue)) == 1
        woken = rig.reclaimer_wakes
        await asyncio.sleep(2)

    assert rig.service.loads.list_loads(rig.queue) == []
    assert rig.reclaimer_wakes > woken
    assert rig.service.loads.take_stale_stage() == load.id_head.hex()
    with pytest.raises(NotFound, match="knows no batch 'b'"):
        rig.service.results.receipt(rig.queue, "b")
    assert check_store(rig.store) == []


@on_service()
async def test_loads_of_a_deleted_queue_go_with_it(rig: ServiceRig) -> None:
    queue = await rig.service.queues.open_queue("doomed", rig.session, must_exist=False)
    load = await rig.service.loads.begin_load(queue, LOAD, batch="", timeout_ms=0)

    assert await rig.service.queues.delete_queue("doomed", rig.session)

    assert rig.reclaimer_wakes == 1
    assert rig.service.loads.take_stale_stage() == load.id_head.hex()
    with pytest.raises(NotFound, match="was deleted"):
        rig.service.loads.list_loads(queue)


@on_service()
async def test_directories_without_a_record_are_removed_at_start(rig: ServiceRig) -> None:
    load = await begin(rig)
    (rig.store.loads_path / "ab12" / "0-part").mkdir(parents=True)

    again = rig.restarted()

    assert again.service.loads.take_stale_stage() == "ab12"
    assert again.service.loads.take_stale_stage() is None
    assert [each.ref for each in again.service.loads.list_loads(again.queue)] == [load.ref]


@on_service()
async def test_directory_that_was_lost_is_made_again(rig: ServiceRig) -> None:
    """A crash came after the load was written, and before its directory was."""
    load = await begin(rig)
    rig.service.loads.remove_stage(load.id_head.hex())

    await stage(rig, load, PART, contents(5))
    await begin(rig)

    assert f"{load.id_head.hex()}/token" in files_of(rig.store.loads_path)
    await commit(rig, [PART])
    assert ready(rig) == 5


# --- refusals -------------------------------------------------------------------------------------


@on_service()
async def test_bad_names_and_numbers_are_refused_and_change_nothing(rig: ServiceRig) -> None:
    load = await begin(rig)
    part, _ = built_part(load, PART, contents(1))
    service, queue = rig.service, rig.queue
    long = "é" * 129
    before, files = dump(rig.store), files_of(rig.store.loads_path)

    def begun(ref: LoadRef, batch: str = "", timeout_ms: int = 0) -> object:
        return service.loads.begin_load(queue, ref, batch=batch, timeout_ms=timeout_ms)

    def sent(ref: PartRef = PART, name: str = "a.sst", offset: int = 0, data: bytes = b"") -> None:
        service.loads.stage_file(queue, LOAD, ref, name, offset, data)

    cases: dict[str, Callable[[], object]] = {
        r"load: it is empty; give 1 to 256 bytes": lambda: begun(LoadRef("")),
        r"load: .* has 258 bytes; the limit is 256": lambda: begun(LoadRef(long)),
        r"batch: .* has 258 bytes; the limit is 256": lambda: begun(LoadRef("x"), batch=long),
        r"timeoutMs: 604800001 is too long; the limit is 604800000": lambda: begun(
            LoadRef("x"), timeout_ms=604_800_001
        ),
        r"partition: 16777216 is too high; it must be 0 to 16777215": lambda: sent(
            PartRef(1 << 24, "a")
        ),
        r"attempt: it is empty": lambda: sent(PartRef(0, "")),
        r"file: '../a.sst' is no name for a file": lambda: sent(name="../a.sst"),
        r"file: 'token' is no name": lambda: sent(name="token"),
        r"data: 1048577 bytes are too many; the limit of a call is 1048576": lambda: sent(
            data=bytes((1 << 20) + 1)
        ),
        r"offset: 'a.sst' would have 268435457 bytes; the limit of a file is 268435456": lambda: (
            sent(offset=(256 << 20) - 1, data=b"xx")
        ),
        r"attempt: .* the limit is 256": lambda: service.loads.finish_part(
            queue, LOAD, replace(part, ref=PartRef(0, long))
        ),
        r"levels: 1; give 10": lambda: service.loads.finish_part(
            queue, LOAD, replace(part, levels=[1])
        ),
        r"partition: 16777216": lambda: service.loads.commit_load(
            queue, LOAD, [PartRef(1 << 24, "a")]
        ),
        r"load: it is empty;": lambda: service.loads.commit_load(queue, LoadRef(""), []),
        r"load: it is empty": lambda: service.loads.abort_load(queue, LoadRef("")),
    }
    for told, call in cases.items():
        with pytest.raises(InvalidArgument, match=told):
            call()

    assert (dump(rig.store), files_of(rig.store.loads_path)) == (before, files)
    assert await begin(rig) == load


@on_service()
async def test_load_that_the_store_refuses_is_not_begun(rig: ServiceRig) -> None:
    before = dump(rig.store)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rig.store, "write", refuse_write)

        with pytest.raises(Unavailable, match="full"):
            await begin(rig)

    assert (dump(rig.store), directories(rig)) == (before, [])
    assert rig.service.loads.list_loads(rig.queue) == []


# --- adds that belong to a load -------------------------------------------------------------------


@on_service()
async def test_adds_with_an_origin_have_ids_that_tell_it(rig: ServiceRig) -> None:
    await begin(rig)
    origin = Origin(LOAD, partition=3, row=40)

    added = await rig.service.items.add(rig.queue, NewItems([b"a", b"b"], origin=origin))

    assert [origin_of(each) for each in added.ids] == [(3, 40), (3, 41)]
    assert check_store(rig.store) == []


@on_service()
async def test_adds_with_an_origin_are_refused_after_the_end_of_the_load(rig: ServiceRig) -> None:
    await begin(rig)
    await rig.service.loads.abort_load(rig.queue, LOAD)
    before = dump(rig.store)

    with pytest.raises(NotFound, match="load: 'load' is not under way"):
        rig.service.items.add(rig.queue, NewItems([b"a"], origin=Origin(LOAD, 0, 0)))
    for origin, told in (
        (Origin(LoadRef(""), 0, 0), "origin.load: it is empty"),
        (Origin(LOAD, 1 << 24, 0), "partition: 16777216 is too high"),
        (Origin(LOAD, 0, (1 << 32) - 1), r"origin.row: 4294967295 is too high for 2 items"),
    ):
        with pytest.raises(InvalidArgument, match=told):
            rig.service.items.add(rig.queue, NewItems([b"a", b"b"], origin=origin))

    assert dump(rig.store) == before


@on_service()
async def test_calls_about_loads_of_a_deleted_queue_are_not_found(rig: ServiceRig) -> None:
    queues, session = rig.service.queues, rig.session
    rig.queue = await queues.open_queue("gone", session, must_exist=False)
    await begin(rig)
    assert await queues.delete_queue("gone", session)

    with pytest.raises(NotFound, match="'gone' was deleted"):
        await rig.service.loads.abort_load(rig.queue, LOAD)
    with pytest.raises(NotFound, match="'gone' was deleted"):
        await rig.service.items.add(rig.queue, NewItems([b"x"], origin=Origin(LOAD, 0, 0)))


@on_service()
async def test_load_that_must_exist_is_found_as_it_stands(rig: ServiceRig) -> None:
    """Its timeout is not shortened, and nobody need know its batch."""
    begun = await begin(rig, batch="b", timeout_ms=7 * DAY_MS)

    found = await rig.service.loads.begin_load(
        rig.queue, LOAD, batch="", timeout_ms=0, must_exist=True
    )

    assert (found.batch, found.expires_at_ms) == ("b", begun.expires_at_ms)
