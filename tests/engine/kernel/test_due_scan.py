"""Look ahead: the next due time, found or put off, but never past."""

import pytest

from queueber.db.families import Family
from queueber.db.records.keys import due_part
from queueber.engine.kernel.due_scan import look_ahead
from queueber.errors import InvariantViolation
from queueber.limits import LOOKAHEAD_RETRY_MS, LOOKAHEAD_SKIPS_MAX
from tests.support.rig import Rig

TOMBSTONES = LOOKAHEAD_SKIPS_MAX + 500


def put_expiries(rig: Rig, times_ms: list[int]) -> None:
    batch = rig.store.batch()
    for at, at_ms in enumerate(times_ms):
        batch.put(Family.LEASE_EXPIRY, rig.queue.prefix + due_part(at_ms, at.to_bytes(16)), b"")
    rig.store.write(batch)


def delete_expiries(rig: Rig, times_ms: list[int]) -> None:
    batch = rig.store.batch()
    for at, at_ms in enumerate(times_ms):
        batch.delete(Family.LEASE_EXPIRY, rig.queue.prefix + due_part(at_ms, at.to_bytes(16)))
    rig.store.write(batch)


def look(rig: Rig) -> tuple[int, int]:
    return look_ahead(rig.store, Family.LEASE_EXPIRY, rig.queue.prefix, rig.now_ms)


def test_look_ahead_finds_the_next_entry_after_now(rig: Rig) -> None:
    put_expiries(rig, [rig.now_ms + 9, rig.now_ms + 4, rig.now_ms])

    assert look(rig) == (rig.now_ms + 4, rig.now_ms + 4)


def test_look_ahead_past_a_few_deleted_entries_finds_the_next(rig: Rig) -> None:
    gone = [rig.now_ms + 1 + n for n in range(LOOKAHEAD_SKIPS_MAX // 2)]
    put_expiries(rig, [*gone, rig.now_ms + 50_000])
    delete_expiries(rig, gone)

    assert look(rig) == (rig.now_ms + 50_000, rig.now_ms + 50_000)


def test_look_ahead_into_a_heap_of_deleted_entries_looks_again_soon(rig: Rig) -> None:
    gone = [rig.now_ms + 1 + n for n in range(TOMBSTONES)]
    put_expiries(rig, [*gone, rig.now_ms + 50_000])
    delete_expiries(rig, gone)

    assert look(rig) == (rig.now_ms + 1, rig.now_ms + LOOKAHEAD_RETRY_MS)


def test_look_ahead_for_an_entry_that_is_not_there_is_a_broken_rule(rig: Rig) -> None:
    with pytest.raises(InvariantViolation, match=r"^I5 is broken: family='lease_expiry'"):
        look(rig)


def test_lease_behind_a_heap_of_deleted_ones_still_expires_in_time(rig: Rig) -> None:
    """Thousands of leases that ended early lie between a due time and the next lease."""
    last_ms = rig.now_ms + 3000
    rig.add(*[b"x"] * (TOMBSTONES + 2))
    rig.poll(lease_ms=10)
    done = rig.poll_many([1] * TOMBSTONES, lease_ms=2000)
    rig.poll(lease_ms=3000)
    for polled in done:
        rig.remove(polled.ids, polled.lease_id)

    looks = 0
    seen_ready_at_ms = []
    while (next_ms := rig.engine.agenda.next_ms()) <= last_ms:
        rig.now_ms = max(rig.now_ms, next_ms)
        looks += 1
        if sum(swept.expired for swept in rig.sweep_all()):
            seen_ready_at_ms.append(rig.now_ms)
    rig.assert_sound()

    assert len(seen_ready_at_ms) == 2
    assert last_ms <= seen_ready_at_ms[1] <= last_ms + LOOKAHEAD_RETRY_MS
    assert looks > 10, "the heap of deleted entries was meant to be in the way"


def test_delayed_item_behind_a_heap_of_deleted_ones_still_becomes_ready_in_time(rig: Rig) -> None:
    due_ms = rig.now_ms + 500
    rig.add(*[b"x"] * TOMBSTONES, delays_ms=[100] * TOMBSTONES)
    (last,) = rig.add(b"last", delays_ms=[500])
    rig.now_ms += 100
    rig.sweep_all()

    while rig.now_ms < due_ms:
        rig.now_ms = max(rig.now_ms + 1, min(rig.engine.agenda.next_ms(), due_ms))
        rig.sweep_all()

    assert rig.ready_ids()[-1] == last
    rig.assert_sound()


def test_look_ahead_that_gave_up_is_taken_up_again_after_a_restart(rig: Rig) -> None:
    rig.add(*[b"x"] * (TOMBSTONES + 2))
    rig.poll(lease_ms=10)
    done = rig.poll_many([1] * TOMBSTONES, lease_ms=2000)
    rig.poll(lease_ms=3000)
    for polled in done:
        rig.remove(polled.ids, polled.lease_id)
    rig.now_ms += 10
    rig.sweep_all()
    assert rig.engine.agenda.next_ms() == rig.now_ms + LOOKAHEAD_RETRY_MS

    rig.reopen()

    rig.now_ms += 3000
    assert sum(swept.expired for swept in rig.sweep_all()) == 1
    rig.assert_sound()
