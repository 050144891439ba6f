"""Cancel: an item goes wherever it is, and only that item."""

import pytest

from queueber.db.families import Family
from queueber.model import FailOutcome, ItemState, NewItems, QueueSettings
from tests.engine.making import counters_aside, make_dead
from tests.support.ending import expire_together
from tests.support.operations import cancel, cancel_batch, cancel_key, create_queue, receipt
from tests.support.rig import Rig

ITEM_FAMILIES = (
    Family.ITEMS, Family.LEFTOVERS, Family.VISIBILITY_INDEX, Family.DELAYED, Family.PLACES,
    Family.DEAD, Family.LEASES, Family.LEASE_EXPIRY, Family.HOLDERS, Family.ATTEMPTS,
)  # fmt: skip
STATES = ("ready", "moved", "delayed", "retried", "leased", "expired", "dead")


def make(rig: Rig, state: str, batch: str = "") -> bytes:
    """An item, alone in its queue."""
    items = NewItems([b"subject"], [50 if state == "delayed" else 0], priorities=[7], batch=batch)
    if state == "dead":
        return make_dead(rig, items)[0]
    (item_id,) = rig.add_items(items).ids
    if state in ("moved", "retried", "leased", "expired"):
        polled = rig.poll(lease_ms=100)
        rig.now_ms += 5
        if state == "moved":
            rig.release([item_id], polled.lease_id)
        if state == "retried":
            assert rig.fail([item_id], polled.lease_id) == [FailOutcome.RETRIED]
        if state == "expired":
            rig.now_ms += 100
    return item_id


@pytest.mark.parametrize("state", STATES)
def test_cancel_leaves_nothing_of_an_item_in_any_state(rig: Rig, state: str) -> None:
    item_id = make(rig, state)

    assert cancel(rig.engine, rig.queue, [item_id], rig.now_ms) == [True]

    assert [family for family in ITEM_FAMILIES if rig.keys(family)] == []
    stats = rig.stats()
    assert (stats.ready, stats.delayed, stats.leased, stats.dead, stats.leases) == (0,) * 5
    assert (stats.contents_bytes, stats.cancelled_total) == (0, 1)
    rig.assert_sound()
    rig.reopen()
    rig.assert_sound()


@pytest.mark.parametrize("state", STATES)
def test_cancel_counts_as_dead_in_the_batch_once(rig: Rig, state: str) -> None:
    item_id = make(rig, state, batch="b")
    rig.queue.batches.finished.clear()

    cancel(rig.engine, rig.queue, [item_id], rig.now_ms)

    found = receipt(rig.engine, rig.queue, "b")
    assert (found.added, found.done, found.dead, found.live) == (1, 0, 1, 0)
    assert found.complete
    assert found.dead_digest == found.added_digest
    assert rig.queue.batches.finished == (set() if state == "dead" else {"b"})
    rig.assert_sound()


@pytest.mark.parametrize("state", STATES)
def test_cancel_of_one_leaves_its_neighbours_as_they_were(rig: Rig, state: str) -> None:
    item_id = make(rig, state)
    other = make(rig, state if state not in ("leased", "expired") else "ready")
    before = counters_aside(rig)

    cancel(rig.engine, rig.queue, [item_id], rig.now_ms)

    after = counters_aside(rig)
    for family in ITEM_FAMILIES:
        name = family.family_name
        lost = [key for key, _ in before[name] if key not in dict(after[name])]
        assert all(key[-16:] != other for key in lost)
    assert rig.stored_ids() == [other]
    rig.assert_sound()


@pytest.mark.parametrize("state", STATES)
def test_cancel_of_an_id_named_twice_counts_it_once(rig: Rig, state: str) -> None:
    item_id = make(rig, state, batch="b")

    assert cancel(rig.engine, rig.queue, [item_id, item_id], rig.now_ms) == [True, True]

    assert rig.stats().cancelled_total == 1
    assert receipt(rig.engine, rig.queue, "b").dead == 1
    rig.assert_sound()


def test_cancel_of_several_in_several_states_answers_each(rig: Rig) -> None:
    (dead,) = make_dead(rig, NewItems([b"dead"]))
    held, kept = rig.add(b"held", b"kept")
    polled = rig.poll(2)
    (ready, delayed) = rig.add(b"ready", b"delayed", delays_ms=[0, 50])

    cancelled = cancel(
        rig.engine, rig.queue, [ready, bytes(16), held, delayed, dead, held], rig.now_ms
    )

    assert cancelled == [True, False, True, True, True, True]
    assert rig.stats().cancelled_total == 4
    assert rig.complete([held, kept], polled.lease_id) == [False, True]
    assert rig.keys(Family.ITEMS) == []
    rig.assert_sound()


def test_cancel_of_the_last_of_a_lease_ends_the_lease(rig: Rig) -> None:
    (item_id,) = rig.add(b"a")
    polled = rig.poll()

    cancel(rig.engine, rig.queue, [item_id], rig.now_ms)

    assert rig.keys(Family.LEASES) == rig.keys(Family.LEASE_EXPIRY) == []
    assert not rig.extend(polled.lease_id, 50)
    assert rig.complete([item_id], polled.lease_id) == [False]
    rig.assert_sound()


def test_cancel_of_a_ready_item_keeps_the_order_of_the_others(rig: Rig) -> None:
    ids = rig.add(*[b"x"] * 5)

    cancel(rig.engine, rig.queue, [ids[0], ids[3]], rig.now_ms)

    rig.assert_sound()
    assert rig.poll(5).ids == [ids[1], ids[2], ids[4]]


def test_cancel_after_the_clock_stepped_back_finds_the_item(rig: Rig) -> None:
    """Its id has a later time than the one at which it is ready."""
    rig.add(b"first")
    rig.now_ms -= 5000
    (item_id,) = rig.add(b"second")
    assert rig.keys(Family.PLACES) == [rig.queue.prefix + item_id]

    assert cancel(rig.engine, rig.queue, [item_id], rig.now_ms) == [True]

    assert rig.keys(Family.PLACES) == []
    rig.assert_sound()


def test_cancel_of_a_suspect_takes_it_off_their_number(rig: Rig) -> None:
    ids = rig.add(b"a", b"b")
    expire_together(rig.engine, rig.queue, [rig.poll(2).lease_id], rig.now_ms)

    cancel(rig.engine, rig.queue, ids[:1], rig.now_ms)

    assert rig.queue.counters.quarantined == 1
    rig.assert_sound()


@pytest.mark.parametrize("why", ["unknown", "gone", "another queue"])
def test_cancel_of_what_is_not_there_changes_nothing(rig: Rig, why: str) -> None:
    create_queue(rig.engine, "other", QueueSettings(), rig.now_ms)
    (item_id,) = rig.add(b"a")
    if why == "gone":
        polled = rig.poll()
        rig.complete(polled.ids, polled.lease_id)
    queue = rig.engine.queues.get("other") if why == "another queue" else rig.queue
    disk, memory = rig.dump(), rig.memory()

    asked = [bytes(16)] if why == "unknown" else [item_id]
    assert cancel(rig.engine, queue, asked, rig.now_ms) == [False]

    assert rig.dump() == disk
    assert rig.memory() == memory


# --- by key and by batch --------------------------------------------------------------------------


def test_cancel_by_key_takes_the_first_item_with_it_also_after_the_window() -> None:
    rig = Rig(QueueSettings(dedup_window_ms=500))
    first, other = rig.add_items(NewItems([b"a", b"b"], keys=["k", "l"])).ids

    assert cancel_key(rig.engine, rig.queue, "k", rig.now_ms) is True
    assert cancel_key(rig.engine, rig.queue, "k", rig.now_ms) is False
    assert cancel_key(rig.engine, rig.queue, "unknown", rig.now_ms) is False
    rig.now_ms += 500
    rig.sweep_all()
    assert rig.ready_ids() == [other] != [first]
    assert cancel_key(rig.engine, rig.queue, "l", rig.now_ms) is True
    assert cancel_key(rig.engine, rig.queue, "l", rig.now_ms) is False

    assert rig.ready_ids() == []
    rig.assert_sound()
    rig.close()


def test_cancel_by_batch_takes_its_items_of_a_state_slice_by_slice(rig: Rig) -> None:
    kept = [rig.add_items(NewItems([b"k"], batch="kept")).ids[0] for _ in range(3)]
    for _ in range(5):
        rig.add_items(NewItems([b"x", b"y"], batch="b"))
    kept += rig.add(b"plain")

    counts, after = [], b""
    while True:
        count, after = cancel_batch(
            rig.engine, rig.queue, "b", ItemState.READY, after, 4, rig.now_ms
        )
        counts.append(count)
        if not after:
            break

    assert counts == [1, 4, 4, 1]
    assert rig.ready_ids() == kept
    told = receipt(rig.engine, rig.queue, "b")
    assert (told.added, told.dead, told.live, told.complete) == (10, 10, 0, True)
    assert rig.stats().cancelled_total == 10
    rig.assert_sound()


@pytest.mark.parametrize("state", STATES)
def test_cancel_by_batch_takes_items_of_every_state(rig: Rig, state: str) -> None:
    make(rig, state, batch="b")

    counts = [
        cancel_batch(rig.engine, rig.queue, "b", each, b"", 10, rig.now_ms) for each in ItemState
    ]

    assert sum(count for count, _ in counts) == 1
    assert [family for family in ITEM_FAMILIES if rig.keys(family)] == []
    told = receipt(rig.engine, rig.queue, "b")
    assert (told.dead, told.live, told.complete) == (1, 0, True)
    rig.assert_sound()


def test_cancel_of_an_unknown_batch_changes_nothing(rig: Rig) -> None:
    rig.add(b"x")
    before = rig.dump()

    cancelled = cancel_batch(rig.engine, rig.queue, "no", ItemState.READY, b"", 9, rig.now_ms)

    assert cancelled == (0, b"")
    assert rig.dump() == before
