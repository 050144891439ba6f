"""Results as their readers see them: in order, from any offset, and what they missed."""

import pytest

from queueber.db.records.log import ROW_END_BYTES
from queueber.engine.queue.results import results_stats
from queueber.errors import InvalidArgument
from queueber.limits import ITEM_WIRE_BYTES, MIB
from queueber.model import LogStats, NewItems, Result, Results
from tests.support.operations import acknowledge, read_results, trim
from tests.support.rig import START_MS, Rig


def complete_some(rig: Rig, *results: bytes) -> list[bytes]:
    """In one call: one block of the log."""
    ids = rig.add(*[b"work"] * len(results))
    polled = rig.poll(len(ids))
    assert all(rig.complete(polled.ids, polled.lease_id, results))
    return ids


def read(rig: Rig, offset: int, limit: int = 1000, bytes_max: int = MIB) -> Results:
    return read_results(rig.engine, rig.queue, offset, limit, bytes_max)


def test_read_results_of_none_is_empty_and_says_where_to_go_on(rig: Rig) -> None:
    assert read(rig, 0) == Results([], next_offset=0, missed=0)


def test_read_results_gives_all_there_is_to_each(rig: Rig) -> None:
    (item_id,) = rig.add_items(NewItems([b"x"], keys=["k"], attributes=[{"a": "ö"}], batch="b")).ids
    polled = rig.poll()
    rig.fail([item_id], polled.lease_id, delay_ms=0)
    rig.now_ms += 5
    polled = rig.poll()
    rig.complete([item_id], polled.lease_id, [b"done"])

    assert read(rig, 0).results == [
        Result(0, item_id, b"done", START_MS + 5, 2, "k", "b", {"a": "ö"})
    ]


@pytest.mark.parametrize("offset", range(6))
@pytest.mark.parametrize("limit", [1, 2, 3, 10])
def test_read_results_from_any_offset_goes_on_across_calls(
    rig: Rig, offset: int, limit: int
) -> None:
    ids = complete_some(rig, b"0", b"1", b"2") + complete_some(rig, b"3") + complete_some(rig, b"4")

    found = read(rig, offset, limit)

    end = min(offset + limit, 5)
    assert [(r.offset, r.id) for r in found.results] == list(enumerate(ids))[offset:end]
    assert [r.result for r in found.results] == [b"%d" % n for n in range(offset, end)]
    assert (found.next_offset, found.missed) == (end, 0)


def test_read_results_stays_within_its_bytes_but_gives_the_first(rig: Rig) -> None:
    complete_some(rig, b"x" * 100, b"y" * 100, b"z" * 100)
    row = 16 + 8 + 100 + ITEM_WIRE_BYTES

    assert len(read(rig, 0, bytes_max=2 * row).results) == 2
    assert len(read(rig, 0, bytes_max=2 * row - 1).results) == 1
    assert len(read(rig, 1, bytes_max=1).results) == 1


def test_read_results_before_the_oldest_says_how_many_were_missed(rig: Rig) -> None:
    for n in range(4):
        complete_some(rig, b"%d" % n)
    acknowledge(rig.store, rig.queue.results, "reader", 2)
    assert trim(rig.store, rig.queue.results, rig.now_ms, age_ms=0, bytes_max=0) == 2

    found = read(rig, 1)

    assert [r.offset for r in found.results] == [2, 3]
    assert (found.missed, found.next_offset) == (1, 4)


def test_read_results_beyond_the_end_is_refused(rig: Rig) -> None:
    complete_some(rig, b"0")
    assert read(rig, 1) == Results([], next_offset=1, missed=0)

    with pytest.raises(InvalidArgument, match="offset is 2; the limit is 1"):
        read(rig, 2)


def test_read_results_changes_nothing_and_survives_a_restart(rig: Rig) -> None:
    complete_some(rig, b"0", b"1")
    disk, memory, before = rig.dump(), rig.memory(), read(rig, 0)

    assert read(rig, 0) == before
    assert rig.dump() == disk
    assert rig.memory() == memory
    rig.reopen()
    assert read(rig, 0) == before


def test_results_stats_tell_offsets_bytes_and_readers(rig: Rig) -> None:
    assert results_stats(rig.queue) == LogStats(0, 0, 0, {})
    complete_some(rig, b"x" * 10)
    complete_some(rig, b"x" * 20)
    acknowledge(rig.store, rig.queue.results, "one", 1)
    acknowledge(rig.store, rig.queue.results, "two", 2)
    rig.sweep_all()
    trim(rig.store, rig.queue.results, rig.now_ms, age_ms=0, bytes_max=0)

    assert results_stats(rig.queue) == LogStats(
        1, 2, 16 + 8 + 20 + ROW_END_BYTES, {"one": 1, "two": 2}
    )


def test_results_stats_do_not_change_with_what_the_caller_does_to_them(rig: Rig) -> None:
    readers = results_stats(rig.queue).readers
    assert isinstance(readers, dict)

    readers["stranger"] = 1

    assert rig.queue.results.readers == {}
