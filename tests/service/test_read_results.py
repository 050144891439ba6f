"""read_results: what was completed, in order, for readers who go on where they acknowledged."""

from collections.abc import Awaitable

import pytest

from queueber.errors import InvalidArgument
from queueber.limits import DAY_MS, MESSAGE_OVERHEAD_BYTES
from queueber.model import QueueSettings, Results
from tests.support.dumps import dump
from tests.support.service_rig import ServiceRig, limits, on_service
from tests.support.virtual_loop import turns


def read(
    rig: ServiceRig, reader: str = "", *, offset: int = 0, limit: int = 0, wait_ms: int = 0
) -> Awaitable[Results]:
    return rig.service.results.read_results(
        rig.queue, reader=reader, offset=offset, limit=limit, wait_ms=wait_ms
    )


def texts(results: Results) -> list[bytes]:
    return [each.result for each in results.results]


async def complete_each(rig: ServiceRig, *results: bytes) -> list[bytes]:
    """Complete an item for each of the results, in a call for each; their ids."""
    ids = []
    for result in results:
        ids += await rig.add(b"x")
        assert await rig.complete(await rig.poll_now(), result) == [True]
    return ids


@on_service()
async def test_read_results_says_of_each_what_was_completed_when_and_at_which_attempt(
    rig: ServiceRig,
) -> None:
    ids = await rig.add(b"a", batch="fan-out")
    await rig.fail(await rig.poll_now(), 0)
    rig.clock.advance(5)
    await rig.complete(await rig.poll_now(), b"r")

    (result,) = (found := await read(rig)).results

    assert (result.offset, result.id, result.result) == (0, ids[0], b"r")
    assert (result.completed_at_ms, result.attempt) == (rig.clock.now_ms(), 2)
    assert (result.key, result.batch) == ("", "fan-out")
    assert (found.next_offset, found.missed) == (1, 0)


@on_service()
async def test_read_results_without_a_reader_reads_from_any_offset_and_changes_nothing(
    rig: ServiceRig,
) -> None:
    await complete_each(rig, b"0", b"1", b"2")
    before = dump(rig.store)

    assert texts(await read(rig, offset=0)) == [b"0", b"1", b"2"]
    assert texts(await read(rig, offset=2)) == [b"2"]
    assert await read(rig, offset=3) == Results([], 3, 0)
    assert dump(rig.store) == before


@on_service()
async def test_read_results_past_the_end_is_refused_at_once(rig: ServiceRig) -> None:
    await complete_each(rig, b"0")

    with pytest.raises(InvalidArgument, match="offset is 2; the limit is 1"):
        read(rig, offset=2, wait_ms=1000)
    with pytest.raises(InvalidArgument, match="offset is 2; the limit is 1"):
        rig.service.results.ack_results(rig.queue, "reader", 2)

    assert rig.service.results.results_stats(rig.queue).readers == {}


# --- limits ---------------------------------------------------------------------------------------


@on_service()
async def test_read_results_up_to_a_limit_says_where_to_read_on(rig: ServiceRig) -> None:
    await complete_each(rig, b"0", b"1", b"2")

    first = await read(rig, limit=2)
    rest = await read(rig, offset=first.next_offset, limit=2)

    assert (texts(first), first.next_offset) == ([b"0", b"1"], 2)
    assert (texts(rest), rest.next_offset) == ([b"2"], 3)
    assert texts(await read(rig, limit=10**9)) == [b"0", b"1", b"2"]


@on_service(limits(message_bytes_max=MESSAGE_OVERHEAD_BYTES + 5000))
async def test_read_results_keeps_its_answer_within_a_message(rig: ServiceRig) -> None:
    await complete_each(rig, *[b"x" * 1000] * 8)

    found = await read(rig)

    assert len(found.results) == found.next_offset == 4


# --- readers --------------------------------------------------------------------------------------


@on_service()
async def test_reader_goes_on_where_it_acknowledged_and_not_where_it_read(
    rig: ServiceRig,
) -> None:
    await complete_each(rig, b"0", b"1", b"2")

    assert texts(await read(rig, "reader", limit=2)) == [b"0", b"1"]
    assert texts(await read(rig, "reader", limit=2)) == [b"0", b"1"]
    await rig.service.results.ack_results(rig.queue, "reader", 1)

    assert texts(await read(rig, "reader")) == [b"1", b"2"]
    assert texts(await read(rig, "another")) == [b"0", b"1", b"2"]
    assert rig.service.results.results_stats(rig.queue).readers == {"reader": 1}


@on_service()
async def test_reader_that_acknowledges_less_than_before_stays_where_it_was(
    rig: ServiceRig,
) -> None:
    await complete_each(rig, b"0", b"1", b"2")
    await rig.service.results.ack_results(rig.queue, "reader", 2)

    await rig.service.results.ack_results(rig.queue, "reader", 1)

    assert texts(await read(rig, "reader")) == [b"2"]


@on_service()
async def test_reader_of_what_was_deleted_is_told_how_many_it_missed(rig: ServiceRig) -> None:
    await rig.service.queues.configure_queue(
        "default", QueueSettings(result_age_ms=DAY_MS), rig.session
    )
    await complete_each(rig, b"0", b"1")
    rig.clock.advance(DAY_MS // 2)
    await complete_each(rig, b"2")
    await rig.service.results.ack_results(rig.queue, "slow", 1)
    rig.clock.advance(DAY_MS // 2)
    assert rig.service.sweep()

    slow, unbound = await read(rig, "slow"), await read(rig, offset=0)
    new = await read(rig, "new")

    assert (texts(slow), slow.missed) == ([b"2"], 1)
    assert (texts(unbound), unbound.missed) == ([b"2"], 2)
    assert (texts(new), new.missed) == ([b"2"], 0)


# --- what is read is deleted ----------------------------------------------------------------------


@on_service()
async def test_ack_of_the_last_reader_deletes_through_the_sweeper_without_time_passing(
    rig: ServiceRig,
) -> None:
    await complete_each(rig, b"0", b"1", b"2")
    await rig.service.results.ack_results(rig.queue, "slow", 0)
    async with rig.sweeper():
        before_ms = rig.clock.now_ms()
        await rig.service.results.ack_results(rig.queue, "quick", 3)
        await turns(10)
        assert rig.service.results.results_stats(rig.queue).first_offset == 0

        await rig.service.results.ack_results(rig.queue, "slow", 2)
        await turns(10)

        assert rig.service.results.results_stats(rig.queue).first_offset == 2
        assert rig.clock.now_ms() == before_ms
        assert texts(await read(rig, offset=2)) == [b"2"]


@on_service()
async def test_drop_of_the_slowest_reader_deletes_what_the_others_have_read(
    rig: ServiceRig,
) -> None:
    await complete_each(rig, b"0", b"1", b"2")
    await rig.service.results.ack_results(rig.queue, "slow", 0)
    await rig.service.results.ack_results(rig.queue, "quick", 3)
    assert not rig.service.sweep()

    assert await rig.service.results.drop_reader(rig.queue, "slow")
    assert not await rig.service.results.drop_reader(rig.queue, "slow")

    assert rig.service.sweep()
    stats = rig.service.results.results_stats(rig.queue)
    assert (stats.first_offset, stats.next_offset, stats.bytes) == (3, 3, 0)
    assert stats.readers == {"quick": 3}


@on_service()
async def test_ack_in_the_middle_of_a_block_keeps_all_of_it_and_leaves_nothing_due(
    rig: ServiceRig,
) -> None:
    await rig.add(b"a", b"b", b"c")
    await rig.complete(await rig.poll_now(3))
    rig.service.next_due_in_ms()

    await rig.service.results.ack_results(rig.queue, "reader", 2)

    assert not rig.service.sweep()
    assert rig.service.results.results_stats(rig.queue).first_offset == 0
    assert len(texts(await read(rig, "reader"))) == 1
