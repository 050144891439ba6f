"""Find: one item by its id or key, with its history, or its result."""

from dataclasses import replace

import pytest

from queueber.db.families import Family
from queueber.engine.queue.find import id_of_key
from queueber.model import Attempt, AttemptEnd, FoundItem, ItemState, NewItems, QueueSettings
from tests.engine.making import allow_attempts
from tests.support.ending import expire_together
from tests.support.entries import history_of
from tests.support.operations import cancel, find_item, run
from tests.support.rig import START_MS, Rig


@pytest.fixture
def rig() -> Rig:
    return Rig(replace(QueueSettings(), backoff_ms=(0,), dedup_window_ms=500))


def find(rig: Rig, item_id: bytes) -> FoundItem:
    found = find_item(rig.engine, rig.queue, item_id).found
    assert found is not None
    return found


def test_attempts_are_told_with_their_times_ends_and_errors(rig: Rig) -> None:
    allow_attempts(rig, 3)
    (item_id,) = rig.add(b"work")
    polled = rig.poll()
    rig.now_ms += 5
    rig.fail(polled.ids, polled.lease_id, "no route", delay_ms=0)
    rig.poll(lease_ms=10)
    rig.now_ms += 10
    rig.sweep_all()
    expire_together(rig.engine, rig.queue, [rig.poll().lease_id], rig.now_ms)

    found = find(rig, item_id)

    assert found.state is ItemState.DEAD
    assert found.item is not None
    assert (found.item.attempts, found.item.deliveries) == (3, 3)
    assert found.item.reason == "its lease ended unfinished at attempt 3 (attempts_max)"
    assert found.attempts == [
        Attempt(START_MS + 5, AttemptEnd.FAILED, "no route"),
        Attempt(START_MS + 15, AttemptEnd.EXPIRED, "the lease ran out"),
        Attempt(START_MS + 15, AttemptEnd.DISCONNECTED, "its worker lost the connection"),
    ]


def test_a_result_is_found_after_the_clock_was_set_back(rig: Rig) -> None:
    (early,) = rig.add(b"early")
    rig.poll()
    rig.now_ms += 60_000
    (late,) = rig.add(b"late")
    polled = rig.poll()
    rig.now_ms -= 60_000

    rig.complete(polled.ids, polled.lease_id, [b"done"])

    result = find(rig, late).result
    assert result is not None
    assert (result.result, result.completed_at_ms) == (b"done", START_MS + 60_000)
    assert find(rig, early).state is ItemState.LEASED


def test_history_from_before_errors_were_kept_has_the_times_and_the_last_error(rig: Rig) -> None:
    (item_id,) = rig.add(b"work")
    for _ in range(2):
        polled = rig.poll()
        rig.fail(polled.ids, polled.lease_id, "x", delay_ms=0)
    key = rig.queue.prefix + item_id
    before = history_of([1, 2], "why", None)
    run(rig.engine, rig.queue, rig.now_ms, lambda tx: tx.batch.put(Family.ATTEMPTS, key, before))

    assert find(rig, item_id).attempts == [Attempt(1, None, ""), Attempt(2, None, "why")]


def test_leased_item_is_told_with_its_lease(rig: Rig) -> None:
    ids = rig.add(b"a", b"b", b"c")
    polled = rig.poll(2, lease_ms=70)

    found = find(rig, ids[1])

    assert (found.state, found.result) == (ItemState.LEASED, None)
    assert found.lease is not None
    assert (found.lease.lease_id, found.lease.items) == (polled.lease_id, 2)
    assert (found.lease.expires_at_ms, found.lease.polled_at_ms) == (START_MS + 70, START_MS)
    assert find(rig, ids[2]).lease is None


def test_completed_item_is_found_by_its_result_however_the_search_is_cut(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("queueber.engine.queue.find.READ_LOOKED_AT_MAX", 2)
    ids: list[bytes] = []
    for at in range(9):
        ids += rig.add_items(NewItems([b"x"], keys=[f"k{at}"])).ids
        polled = rig.poll()
        rig.complete(polled.ids, polled.lease_id, [b"done %d" % at])

    finding = find_item(rig.engine, rig.queue, ids[7])
    offsets = []
    while finding.found is None:
        offsets.append(finding.next_offset)
        finding = find_item(rig.engine, rig.queue, ids[7], finding.next_offset)

    assert offsets == [2, 4, 6]
    assert (finding.found.state, finding.found.item) == (None, None)
    assert finding.found.result is not None
    assert (finding.found.result.offset, finding.found.result.result) == (7, b"done 7")
    assert finding.found.key == "k7"


def test_search_among_results_begins_at_the_time_of_the_add(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("queueber.engine.queue.find.READ_LOOKED_AT_MAX", 1)
    for _ in range(30):
        rig.add(b"x")
        polled = rig.poll()
        rig.complete(polled.ids, polled.lease_id, [b""])
        rig.now_ms += 100
    rig.now_ms += 5000
    (item_id,) = rig.add(b"late")
    polled = rig.poll()
    rig.complete(polled.ids, polled.lease_id, [b"found at once"])

    finding = find_item(rig.engine, rig.queue, item_id)

    assert finding.found is not None
    assert finding.found.result is not None
    assert finding.found.result.result == b"found at once"


def test_item_that_is_gone_without_a_result_is_not_found(rig: Rig) -> None:
    ids = rig.add(b"a", b"b")
    cancel(rig.engine, rig.queue, ids[:1], rig.now_ms)
    polled = rig.poll()
    rig.remove(polled.ids, polled.lease_id)

    for item_id in (*ids, bytes(16)):
        finding = find_item(rig.engine, rig.queue, item_id)
        assert (finding.found, finding.next_offset) == (None, 0)


def test_key_leads_to_the_first_item_within_its_window_and_while_that_is_there(rig: Rig) -> None:
    added = rig.add_items(NewItems([b"a", b"b"], keys=["k", "k"]))

    def look(key: str) -> bytes:
        return id_of_key(rig.engine.store, rig.queue, key, rig.now_ms)

    assert (look("k"), look("other")) == (added.ids[0], b"")
    rig.now_ms += 499
    assert look("k") == added.ids[0]
    rig.now_ms += 1
    assert look("k") == added.ids[0]
    rig.sweep_all()
    assert look("k") == added.ids[0]
    polled = rig.poll(lease_ms=5000)
    assert look("k") == added.ids[0]
    rig.fail(polled.ids, polled.lease_id)
    assert look("k") == added.ids[0]
    polled = rig.poll()
    rig.remove(polled.ids, polled.lease_id)
    assert look("k") == b""


def test_looking_changes_nothing(rig: Rig) -> None:
    ids = rig.add(b"a", b"b")
    rig.poll()
    disk, memory = rig.dump(), rig.memory()

    for item_id in ids:
        find(rig, item_id)

    assert (rig.dump(), rig.memory()) == (disk, memory)
