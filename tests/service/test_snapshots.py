"""Snapshots: kept for those who read them, and for no longer than they may be."""

import asyncio
from itertools import pairwise

import pytest

from queueber.errors import InvalidArgument, NotFound, ResourceExhausted
from queueber.limits import (
    SCAN_ITEMS_MAX,
    SNAPSHOT_KEEP_MS,
    SNAPSHOT_YIELDS_MS,
    SNAPSHOTS_MAX,
    SPLIT_PARTS_MAX,
)
from queueber.model import ItemState, QueueSettings
from tests.support.dumps import dump
from tests.support.service_rig import ServiceRig, on_service
from tests.support.virtual_loop import turns


def scan(rig: ServiceRig, snapshot_id: bytes, state: ItemState = ItemState.READY) -> list[bytes]:
    page, _ = rig.service.snapshots.scan_snapshot(rig.queue, snapshot_id, state)
    return [each.id for each in page]


@on_service()
async def test_snapshot_tells_what_there_was_and_keeps_it(rig: ServiceRig) -> None:
    ids = await rig.add(b"a", b"b", b"c")
    await rig.complete(await rig.poll_now(), b"done")
    await rig.add(b"d", delay_ms=1000)
    before = dump(rig.store)
    info = rig.service.snapshots.open_snapshot(rig.queue)

    assert dump(rig.store) == before
    assert (info.ready, info.delayed, info.leased, info.dead) == (2, 1, 0, 0)
    assert (info.first_offset, info.next_offset) == (0, 1)
    assert info.taken_at_ms == rig.clock.now_ms()

    await rig.complete(await rig.poll_now(2), b"later")
    await rig.service.results.ack_results(rig.queue, "reader", 3)
    rig.service.sweep()

    assert scan(rig, info.id) == ids[1:]
    found = rig.service.snapshots.read_snapshot(rig.queue, info.id, offset=0, limit=0)
    assert [each.result for each in found.results] == [b"done"]
    assert (found.next_offset, found.missed) == (1, 0)


@on_service()
async def test_page_of_a_snapshot_is_small_whatever_is_asked_for(rig: ServiceRig) -> None:
    await rig.add(*[b"x"] * (SCAN_ITEMS_MAX + 1))
    info = rig.service.snapshots.open_snapshot(rig.queue)

    page, after = rig.service.snapshots.scan_snapshot(
        rig.queue, info.id, ItemState.READY, limit=10**6
    )
    rest, end = rig.service.snapshots.scan_snapshot(
        rig.queue, info.id, ItemState.READY, after=after
    )

    assert (len(page), len(rest), end) == (SCAN_ITEMS_MAX, 1, b"")


@on_service()
async def test_split_cuts_a_snapshot_into_ranges_that_have_every_item_once(rig: ServiceRig) -> None:
    ids: list[bytes] = []
    for _ in range(100):
        ids += await rig.add(b"x", b"y")
        rig.clock.advance(10)
    snapshots = rig.service.snapshots
    info = snapshots.open_snapshot(rig.queue)

    cuts = snapshots.split_snapshot(rig.queue, info.id, ItemState.READY, 4)

    ranges = [
        snapshots.scan_snapshot(rig.queue, info.id, ItemState.READY, after=after, before=before)
        for after, before in pairwise([b"", *cuts, b""])
    ]
    assert len(ranges) == 4
    assert [each.id for page, _ in ranges for each in page] == ids


@on_service()
async def test_split_refuses_no_parts_and_too_many(rig: ServiceRig) -> None:
    snapshots = rig.service.snapshots
    info = snapshots.open_snapshot(rig.queue)

    for parts in (0, SPLIT_PARTS_MAX + 1):
        with pytest.raises(InvalidArgument, match=f"parts: {parts} is not .* 1 to 10000"):
            snapshots.split_snapshot(rig.queue, info.id, ItemState.READY, parts)


# --- how it ends ----------------------------------------------------------------------------------


@on_service()
async def test_snapshot_that_nobody_reads_ends(rig: ServiceRig) -> None:
    async with rig.sweeper():
        info = rig.service.snapshots.open_snapshot(rig.queue)
        assert info.expires_at_ms == info.taken_at_ms + SNAPSHOT_KEEP_MS

        await asyncio.sleep(SNAPSHOT_KEEP_MS / 1000 - 0.001)
        scan(rig, info.id)  # it is read: its time begins anew
        await asyncio.sleep(SNAPSHOT_KEEP_MS / 1000 - 0.001)
        scan(rig, info.id)
        await asyncio.sleep(SNAPSHOT_KEEP_MS / 1000)
        await turns()

        with pytest.raises(
            NotFound, match=r"the snapshot has ended, .* open another and read again"
        ):
            scan(rig, info.id)
        assert not rig.service.snapshots.close_snapshot(rig.queue, info.id)
        assert rig.loop.timers() == 0


@on_service()
async def test_snapshots_expire_as_a_duty_of_the_sweeper(rig: ServiceRig) -> None:
    snapshots = rig.service.snapshots
    first = snapshots.open_snapshot(rig.queue)
    rig.clock.advance(1000)
    second = snapshots.open_snapshot(rig.queue)

    assert rig.service.next_due_in_ms() == SNAPSHOT_KEEP_MS - 1000
    assert snapshots.expire_snapshots(rig.clock.now_ms()) == first.expires_at_ms
    assert snapshots.expire_snapshots(first.expires_at_ms) == second.expires_at_ms
    with pytest.raises(NotFound):
        scan(rig, first.id)
    assert scan(rig, second.id) == []
    snapshots.close_snapshot(rig.queue, second.id)
    rig.clock.advance(SNAPSHOT_KEEP_MS)
    assert not rig.service.sweep()
    assert rig.service.next_due_in_ms() is None


@on_service()
async def test_snapshot_that_is_closed_is_gone(rig: ServiceRig) -> None:
    info = rig.service.snapshots.open_snapshot(rig.queue)

    assert rig.service.snapshots.close_snapshot(rig.queue, info.id)
    assert not rig.service.snapshots.close_snapshot(rig.queue, info.id)
    with pytest.raises(NotFound):
        rig.service.snapshots.read_snapshot(rig.queue, info.id, offset=0, limit=1)


@on_service()
async def test_snapshots_of_a_deleted_queue_end_with_it_and_others_stay(rig: ServiceRig) -> None:
    await rig.service.queues.create_queue("other", QueueSettings(), rig.session)
    other = await rig.service.queues.open_queue("other", rig.session, must_exist=True)
    ours = rig.service.snapshots.open_snapshot(rig.queue)
    for _ in range(SNAPSHOTS_MAX - 1):
        rig.service.snapshots.open_snapshot(other)

    await rig.service.queues.delete_queue("other", rig.session)

    assert scan(rig, ours.id) == []
    for _ in range(SNAPSHOTS_MAX - 1):
        rig.service.snapshots.open_snapshot(rig.queue)  # there is room again


@on_service()
async def test_snapshot_of_another_queue_is_not_to_be_had_here(rig: ServiceRig) -> None:
    await rig.service.queues.create_queue("other", QueueSettings(), rig.session)
    other = await rig.service.queues.open_queue("other", rig.session, must_exist=True)
    theirs = rig.service.snapshots.open_snapshot(other)

    with pytest.raises(NotFound, match="never one of this queue"):
        scan(rig, theirs.id)
    assert not rig.service.snapshots.close_snapshot(rig.queue, theirs.id)


@on_service()
async def test_snapshots_end_when_the_server_stops(rig: ServiceRig) -> None:
    info = rig.service.snapshots.open_snapshot(rig.queue)

    await rig.service.drain()

    with pytest.raises(NotFound):
        scan(rig, info.id)


# --- how many -------------------------------------------------------------------------------------


@on_service()
async def test_one_snapshot_too_many_is_refused_while_all_are_read(rig: ServiceRig) -> None:
    opened = [rig.service.snapshots.open_snapshot(rig.queue) for _ in range(SNAPSHOTS_MAX)]

    with pytest.raises(ResourceExhausted, match=f"{SNAPSHOTS_MAX} snapshots are being read"):
        rig.service.snapshots.open_snapshot(rig.queue)

    assert [scan(rig, each.id) for each in opened] == [[]] * SNAPSHOTS_MAX


@on_service()
async def test_snapshot_not_read_for_a_while_makes_room_for_a_new_one(rig: ServiceRig) -> None:
    opened = [rig.service.snapshots.open_snapshot(rig.queue) for _ in range(SNAPSHOTS_MAX)]
    rig.clock.advance(SNAPSHOT_YIELDS_MS)
    for each in opened[1:]:
        scan(rig, each.id)

    rig.service.snapshots.open_snapshot(rig.queue)

    with pytest.raises(NotFound):
        scan(rig, opened[0].id)
    assert scan(rig, opened[1].id) == []
    with pytest.raises(ResourceExhausted):
        rig.service.snapshots.open_snapshot(rig.queue)


@on_service()
async def test_bad_cursors_and_batches_are_refused(rig: ServiceRig) -> None:
    info = rig.service.snapshots.open_snapshot(rig.queue)

    with pytest.raises(InvalidArgument, match="after: 65 bytes are no cursor"):
        rig.service.snapshots.scan_snapshot(rig.queue, info.id, ItemState.DEAD, after=bytes(65))
    with pytest.raises(InvalidArgument, match="before: 65 bytes are no cursor"):
        rig.service.snapshots.scan_snapshot(rig.queue, info.id, ItemState.DEAD, before=bytes(65))
    with pytest.raises(InvalidArgument, match=r"batch: .* the limit is 256"):
        rig.service.snapshots.scan_snapshot(rig.queue, info.id, ItemState.DEAD, batch="b" * 257)
    with pytest.raises(InvalidArgument, match="offset is 1; the limit is 0"):
        rig.service.snapshots.read_snapshot(rig.queue, info.id, offset=1, limit=0)
