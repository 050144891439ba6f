"""Complete: the item goes and its result comes, in one batch, exactly once."""

import pytest

from queueber.limits import MIB
from queueber.model import NewItems, QueueSettings, Result
from tests.engine.making import come_back_at_once, counters_aside
from tests.support.operations import (
    acknowledge,
    complete,
    configure_queue,
    create_queue,
    read_results,
    receipt,
)
from tests.support.rig import QUEUE, Rig


def results_of(rig: Rig) -> list[Result]:
    return list(read_results(rig.engine, rig.queue, 0, 1000, MIB).results)


def test_complete_leaves_a_result_and_nothing_else(rig: Rig) -> None:
    empty = counters_aside(rig)
    (item_id,) = rig.add(b"work")
    polled = rig.poll()
    rig.now_ms += 7

    assert rig.complete(polled.ids, polled.lease_id, [b"done"]) == [True]

    assert results_of(rig) == [Result(0, item_id, b"done", rig.now_ms, 1, "", "")]
    after = counters_aside(rig)
    assert {name for name in after if after[name] != empty[name]} == {"logs", "log_blocks"}
    assert (rig.stats().completed_total, rig.stats().removed_total) == (1, 0)
    rig.assert_sound()


def test_complete_of_items_that_carry_something_tells_it_in_their_results(rig: Rig) -> None:
    """Plain and other items in one call, in another order than they were given."""
    (plain,) = rig.add(b"plain")
    keyed, batched = rig.add_items(
        NewItems([b"x", b"y"], keys=["schlüssel", ""], attributes=[{}, {"a": "b"}], batch="b")
    ).ids
    polled = rig.poll(3)
    rig.fail([batched], polled.lease_id, delay_ms=0)
    again = rig.poll()

    completed = complete(
        rig.engine,
        rig.queue,
        [batched, plain, keyed],
        [again.lease_id, polled.lease_id, polled.lease_id],
        [b"1", b"", b"3"],
        rig.now_ms,
    )

    assert completed == [True] * 3
    assert [(r.offset, r.id, r.result, r.attempt, r.key, r.batch) for r in results_of(rig)] == [
        (0, batched, b"1", 2, "", "b"),
        (1, plain, b"", 1, "", ""),
        (2, keyed, b"3", 1, "schlüssel", "b"),
    ]
    rig.assert_sound()


def test_complete_of_some_stores_the_results_of_those_alone(rig: Rig) -> None:
    ids = rig.add(b"a", b"b", b"c")
    polled = rig.poll(3)

    completed = rig.complete(
        [ids[2], bytes(16), ids[0], ids[2]], polled.lease_id, [b"c", b"no", b"a", b"again"]
    )

    assert completed == [True, False, True, False]
    assert [(r.id, r.result) for r in results_of(rig)] == [(ids[2], b"c"), (ids[0], b"a")]
    assert rig.stats().leased == 1
    rig.assert_sound()


def test_complete_counts_as_done_in_the_batch(rig: Rig) -> None:
    rig.add_items(NewItems([b"a", b"b"], batch="b"))
    polled = rig.poll(2)

    rig.complete(polled.ids[:1], polled.lease_id)
    assert receipt(rig.engine, rig.queue, "b").live == 1
    assert rig.queue.batches.finished == set()

    rig.complete(polled.ids[1:], polled.lease_id)
    found = receipt(rig.engine, rig.queue, "b")
    assert (found.done, found.dead, found.live, found.complete) == (2, 0, 0, True)
    assert rig.queue.batches.finished == {"b"}


@pytest.mark.parametrize("why", ["expired", "unknown lease", "unknown id", "another queue", "done"])
def test_complete_that_is_refused_changes_nothing(rig: Rig, why: str) -> None:
    create_queue(rig.engine, "other", QueueSettings(), rig.now_ms)
    rig.add(b"a", b"b")
    polled = rig.poll(2, lease_ms=100)
    queue = rig.engine.queues.get("other") if why == "another queue" else rig.queue
    ids = [bytes(16)] * 2 if why == "unknown id" else list(polled.ids)
    lease = bytes(16) if why == "unknown lease" else polled.lease_id
    if why == "expired":
        rig.now_ms += 100
    if why == "done":
        rig.complete(ids, lease)
    disk, memory = rig.dump(), rig.memory()

    completed = complete(rig.engine, queue, ids, [lease] * 2, [b"x", b"y"], rig.now_ms)

    assert completed == [False, False]
    assert rig.dump() == disk
    assert rig.memory() == memory


def test_complete_after_another_holder_did_leaves_the_first_result(rig: Rig) -> None:
    """Of two who worked on an item, exactly one has its result stored."""
    come_back_at_once(rig)
    rig.add(b"a")
    slow = rig.poll(lease_ms=10)
    rig.now_ms += 10
    rig.sweep_all()
    quick = rig.poll()

    assert rig.complete(quick.ids, quick.lease_id, [b"quick"]) == [True]
    assert rig.complete(slow.ids, slow.lease_id, [b"slow"]) == [False]

    assert [(r.result, r.attempt) for r in results_of(rig)] == [(b"quick", 2)]
    rig.assert_sound()


def test_complete_has_results_looked_at_when_they_are_old(rig: Rig) -> None:
    configure_queue(rig.engine, QUEUE, QueueSettings(result_age_ms=5000), rig.now_ms)
    rig.add(b"a")
    polled = rig.poll(lease_ms=60_000)

    rig.complete(polled.ids, polled.lease_id)

    due_ms = rig.now_ms + 5000
    assert rig.engine.agenda.next_ms() == due_ms
    rig.now_ms = due_ms
    rig.sweep_all()
    assert results_of(rig) == []
    rig.assert_sound()


def test_complete_past_the_bytes_that_are_kept_deletes_the_oldest_at_once(rig: Rig) -> None:
    configure_queue(rig.engine, QUEUE, QueueSettings(result_bytes_max=300), rig.now_ms)
    for _ in range(5):
        rig.add(b"a")
        polled = rig.poll(lease_ms=60_000)
        rig.complete(polled.ids, polled.lease_id, [b"r" * 200])
        rig.sweep_all()

    kept = read_results(rig.engine, rig.queue, 0, 1000, MIB)
    assert [r.offset for r in kept.results] == [3, 4]
    assert (kept.missed, kept.next_offset) == (3, 5)
    assert rig.stats().results == 2
    rig.assert_sound()


def test_complete_while_a_reader_is_behind_keeps_its_results(rig: Rig) -> None:
    acknowledge(rig.store, rig.queue.results, "reader", 0)
    for _ in range(3):
        rig.add(b"a")
        polled = rig.poll()
        rig.complete(polled.ids, polled.lease_id)
        rig.sweep_all()

    assert len(results_of(rig)) == 3
