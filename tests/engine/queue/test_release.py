"""Release: what is given back is ready at once, and nobody is charged."""

import pytest

from queueber.db.families import Family
from queueber.db.records.runs import MarkFields
from queueber.model import NewItems, QueueSettings
from tests.engine.making import mark_of, run_of
from tests.support.operations import create_queue, release, release_lease
from tests.support.rig import Rig

RELEASED = MarkFields(uncharged=1)


def test_release_makes_items_ready_now_behind_those_that_waited(rig: Rig) -> None:
    ids = rig.add(b"a", b"b", b"c")
    polled = rig.poll(2)
    rig.now_ms += 5

    assert rig.release([ids[1], ids[0]], polled.lease_id) == [True, True]

    assert rig.runs(Family.VISIBILITY_INDEX) == [
        run_of(ids[2:], 1, at=2),
        run_of(ids[:2], 2, RELEASED, span=3),
    ]
    assert rig.dump()["leases"] == rig.dump()["lease_expiry"] == rig.dump()["attempts"] == []
    assert (rig.stats().released_total, rig.stats().failed_total) == (2, 0)
    rig.assert_sound()


def test_release_at_the_time_of_the_add_needs_no_place(rig: Rig) -> None:
    (item_id,) = rig.add(b"a")
    polled = rig.poll()

    rig.release([item_id], polled.lease_id)

    assert rig.keys(Family.PLACES) == []
    rig.now_ms += 1
    polled = rig.poll()
    rig.release([item_id], polled.lease_id)
    assert rig.dump()["places"] == [(rig.queue.prefix + item_id, rig.now_ms.to_bytes(8))]
    rig.assert_sound()


def test_release_of_some_leaves_the_lease_with_the_rest(rig: Rig) -> None:
    ids = rig.add(b"a", b"b")
    polled = rig.poll(2)

    assert rig.release([ids[0], bytes(16), ids[0]], polled.lease_id) == [True, False, False]

    assert rig.ready_ids() == ids[:1]
    assert rig.complete(ids[1:], polled.lease_id) == [True]
    rig.assert_sound()


def test_release_keeps_what_the_item_had_gone_through(rig: Rig) -> None:
    rig.add_items(NewItems([b"a", b"b"], priorities=[8, 8], keys=["k", "l"], batch="b"))
    rig.poll(2, lease_ms=10)
    rig.now_ms += 10
    rig.sweep_all()
    polled = rig.poll()
    rig.fail(polled.ids, polled.lease_id, delay_ms=0)
    before = mark_of(rig, polled.ids[0])
    for answer in rig.poll_many([1, 1]):
        rig.release(answer.ids, answer.lease_id)

    assert mark_of(rig, polled.ids[0]) == before._replace(uncharged=2)
    assert before == MarkFields(batch=1, attempts=1, group_max=1, priority=8, flags=1, uncharged=1)
    rig.assert_sound()


@pytest.mark.parametrize("why", ["expired", "unknown lease", "unknown id", "another queue"])
def test_release_that_is_refused_changes_nothing(rig: Rig, why: str) -> None:
    create_queue(rig.engine, "other", QueueSettings(), rig.now_ms)
    rig.add(b"a", b"b")
    polled = rig.poll(2, lease_ms=100)
    queue = rig.engine.queues.get("other") if why == "another queue" else rig.queue
    ids = [bytes(16)] * 2 if why == "unknown id" else polled.ids
    lease = bytes(16) if why == "unknown lease" else polled.lease_id
    if why == "expired":
        rig.now_ms += 100
    disk, memory = rig.dump(), rig.memory()

    assert release(rig.engine, queue, ids, [lease] * 2, rig.now_ms) == [False, False]

    assert rig.dump() == disk
    assert rig.memory() == memory


# --- a whole lease --------------------------------------------------------------------------------


def test_release_lease_gives_back_all_it_holds_however_late(rig: Rig) -> None:
    """For an answer that never reached its caller. It counts as a lease like any other."""
    ids = rig.add(b"a", b"bb", b"c")
    polled = rig.poll(3, lease_ms=100)
    rig.complete(ids[2:], polled.lease_id)
    rig.now_ms += 100

    assert release_lease(rig.engine, rig.queue, polled.lease_id, rig.now_ms) == 2

    assert rig.runs(Family.VISIBILITY_INDEX) == [run_of(ids[:2], 3, RELEASED, span=3)]
    assert (rig.stats().leases, rig.stats().released_total, rig.stats().expired_total) == (0, 2, 0)
    rig.assert_sound()


@pytest.mark.parametrize("why", ["unknown", "ended"])
def test_release_lease_that_is_not_there_changes_nothing(rig: Rig, why: str) -> None:
    rig.add(b"a")
    polled = rig.poll()
    if why == "ended":
        rig.complete(polled.ids, polled.lease_id)
    disk, memory = rig.dump(), rig.memory()

    lease_id = bytes(16) if why == "unknown" else polled.lease_id
    assert release_lease(rig.engine, rig.queue, lease_id, rig.now_ms) == 0

    assert rig.dump() == disk
    assert rig.memory() == memory
