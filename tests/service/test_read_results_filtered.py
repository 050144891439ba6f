"""read_results of a batch, before an offset, without columns: what is wanted, in bounded work."""

import asyncio
from collections.abc import Awaitable

import pytest

from queueber.errors import InvalidArgument
from queueber.model import ALL_COLUMNS, Column, NewItems, Result, Results
from tests.support.service_rig import ServiceRig, on_service


def read(
    rig: ServiceRig,
    offset: int = 0,
    *,
    limit: int = 0,
    before: int = 0,
    batch: str = "",
    wait_ms: int = 0,
    without: frozenset[Column] = ALL_COLUMNS,
) -> Awaitable[Results]:
    return rig.service.results.read_results(
        rig.queue,
        reader="",
        offset=offset,
        limit=limit,
        wait_ms=wait_ms,
        before=before,
        batch=batch,
        without=without,
    )


async def complete_each(rig: ServiceRig, *batches: str) -> None:
    """Complete an item of each batch; the results have the names of the batches."""
    for batch in batches:
        await rig.add(b"x", batch=batch)
        await rig.complete(await rig.poll_now(), batch.encode())


def offsets(results: Results) -> list[int]:
    return [each.offset for each in results.results]


@on_service()
async def test_read_of_a_batch_brings_its_results_with_their_offsets(rig: ServiceRig) -> None:
    await complete_each(rig, "red", "", "green", "red")

    assert offsets(await read(rig, batch="red")) == [0, 3]
    assert offsets(await read(rig, 1, batch="red")) == [3]
    assert offsets(await read(rig, batch="green")) == [2]
    assert await read(rig, batch="blue") == Results([], 4, 0)


@on_service()
async def test_read_of_a_batch_up_to_a_limit_goes_on_where_it_stopped(rig: ServiceRig) -> None:
    await complete_each(rig, "red", "", "red", "", "red")

    first = await read(rig, batch="red", limit=2)
    rest = await read(rig, first.next_offset, batch="red", limit=2)

    assert (offsets(first), offsets(rest), rest.next_offset) == ([0, 2], [4], 5)


def test_read_of_a_batch_looks_at_so_many_and_says_how_far_it_came(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("queueber.engine.queue.results.READ_LOOKED_AT_MAX", 3)

    @on_service()
    async def test(rig: ServiceRig) -> None:
        await complete_each(rig, "", "", "", "", "red")

        # It does not wait: there is more to look at.
        first = await asyncio.wait_for(read(rig, batch="red", wait_ms=10**6), 0.001)
        rest = await read(rig, first.next_offset, batch="red")

        assert (offsets(first), first.next_offset) == ([], 3)
        assert (offsets(rest), rest.next_offset) == ([4], 5)

    test()


@on_service()
async def test_read_of_a_batch_waits_at_the_end_for_one_of_it(rig: ServiceRig) -> None:
    await complete_each(rig, "", "green")
    task = await rig.waiting(read(rig, batch="red", wait_ms=30_000))

    await complete_each(rig, "green", "")
    assert not task.done()
    await complete_each(rig, "red")

    assert offsets(await task) == [4]


@on_service()
async def test_read_before_an_offset_ends_there_and_waits_for_nothing_beyond(
    rig: ServiceRig,
) -> None:
    await complete_each(rig, "a", "b", "c")

    assert offsets(await read(rig, before=2)) == [0, 1]
    assert (await read(rig, before=2)).next_offset == 2
    assert offsets(await read(rig, before=9)) == [0, 1, 2]
    for offset in (2, 3):
        nothing = await asyncio.wait_for(read(rig, offset, before=2, wait_ms=10**6), 0.001)
        assert nothing == Results([], offset, 0)


@on_service()
async def test_read_before_an_offset_tells_only_what_it_missed_itself(rig: ServiceRig) -> None:
    await complete_each(rig, "a", "b", "c", "d", "e")
    await rig.service.results.ack_results(rig.queue, "reader", 2)
    rig.service.sweep()

    assert await read(rig, before=1) == Results([], 1, 1)
    assert (await read(rig, before=2)).missed == 2
    found = await read(rig, before=3)
    assert (offsets(found), found.missed) == ([2], 2)


@on_service()
async def test_read_without_columns_leaves_them_out_and_keeps_the_rest(rig: ServiceRig) -> None:
    items = NewItems([b"x"], keys=["k"], attributes=[{"a": "1"}], batch="b")
    (item_id,) = (await rig.service.items.add(rig.queue, items)).ids
    await rig.complete(await rig.poll_now(), b"r")
    now_ms = rig.clock.now_ms()

    whole = (await read(rig)).results
    bare = (await read(rig, without=frozenset(Column), batch="b")).results
    keyed = (await read(rig, without=frozenset({Column.RESULTS, Column.ATTRIBUTES}))).results

    assert whole == [Result(0, item_id, b"r", now_ms, 1, "k", "b", {"a": "1"})]
    assert bare == [Result(0, item_id, b"", now_ms, 1, "", "", {})]
    assert keyed == [Result(0, item_id, b"", now_ms, 1, "k", "b", {})]


@on_service()
async def test_read_of_a_batch_with_too_long_a_name_is_refused(rig: ServiceRig) -> None:
    with pytest.raises(InvalidArgument, match=r"batch: .* the limit is 256"):
        read(rig, batch="b" * 257)
