"""Pause: nothing is given out until its time or a resume; all else goes on."""

import pytest

from queueber.db.records.keys import NEVER_MS
from queueber.db.records.queues import decode_queue
from queueber.model import NOTHING_POLLED, Sweep
from tests.engine.making import come_back_at_once
from tests.support.operations import pause, resume, resume_if_due
from tests.support.rig import QUEUE, START_MS, Rig

untils = pytest.mark.parametrize("until_ms", [START_MS + 50, NEVER_MS])


def paused_on_disk(rig: Rig) -> int:
    ((_, record),) = rig.dump()["queues"]
    return decode_queue(record)[3]


@untils
def test_pause_gives_out_nothing_and_changes_nothing_by_a_poll(rig: Rig, until_ms: int) -> None:
    rig.add(b"a")
    pause(rig.engine, rig.queue, until_ms)
    disk, memory = rig.dump(), rig.memory()
    rig.now_ms = START_MS + 49

    assert rig.poll_many([1, 5]) == [NOTHING_POLLED] * 2

    assert rig.dump() == disk
    assert rig.memory() == memory


def test_pause_is_over_at_the_very_millisecond_swept_or_not(rig: Rig) -> None:
    (item_id,) = rig.add(b"a")
    pause(rig.engine, rig.queue, rig.now_ms + 50)
    rig.now_ms += 50

    assert rig.poll().ids == [item_id]


def test_pause_lets_all_else_go_on(rig: Rig) -> None:
    """Adds, outcomes, extensions, expiries and delays."""
    come_back_at_once(rig)
    ids = rig.add(b"a", b"b", b"c", b"d")
    polled = rig.poll(3, lease_ms=100)
    pause(rig.engine, rig.queue, NEVER_MS)

    rig.add(b"e", b"f", delays_ms=[0, 100])
    assert rig.complete(ids[:1], polled.lease_id) == [True]
    assert rig.release(ids[1:2], polled.lease_id) == [True]
    assert rig.extend(polled.lease_id, 100)
    rig.now_ms += 100
    rig.sweep_all()

    stats = rig.stats()
    assert (stats.ready, stats.delayed, stats.leased) == (5, 0, 0)
    rig.assert_sound()


@untils
def test_pause_is_stored_and_survives_a_restart(rig: Rig, until_ms: int) -> None:
    rig.add(b"a")
    pause(rig.engine, rig.queue, until_ms)
    assert paused_on_disk(rig) == rig.queue.paused_until_ms == until_ms

    rig.reopen()

    assert rig.queue.paused_until_ms == until_ms
    assert rig.poll() == NOTHING_POLLED
    assert rig.engine.agenda.next_ms() == until_ms
    rig.assert_sound()


def test_pause_again_takes_the_last_time_said(rig: Rig) -> None:
    for until_ms in (NEVER_MS, START_MS + 10, START_MS + 90):
        pause(rig.engine, rig.queue, until_ms)

    assert paused_on_disk(rig) == rig.queue.paused_until_ms == START_MS + 90
    rig.now_ms += 10
    assert [swept.resumed for swept in rig.sweep_all()] == [False]
    rig.now_ms += 80
    assert [swept.resumed for swept in rig.sweep_all()] == [True]


def test_pause_leaves_name_settings_and_creation_as_they_were(rig: Rig) -> None:
    ((_, record),) = rig.dump()["queues"]
    before = decode_queue(record)[:3]

    pause(rig.engine, rig.queue, NEVER_MS)

    ((_, record),) = rig.dump()["queues"]
    assert decode_queue(record) == (*before, NEVER_MS)


# --- the end of a pause ---------------------------------------------------------------------------


@untils
def test_resume_gives_out_items_at_once(rig: Rig, until_ms: int) -> None:
    (item_id,) = rig.add(b"a")
    disk = rig.dump()
    pause(rig.engine, rig.queue, until_ms)

    resume(rig.engine, rig.queue)

    assert rig.dump() == disk
    assert rig.queue.paused_until_ms == 0
    assert rig.poll().ids == [item_id]


def test_resume_of_a_queue_that_is_not_paused_changes_nothing(rig: Rig) -> None:
    disk, memory = rig.dump(), rig.memory()

    resume(rig.engine, rig.queue)

    assert rig.dump() == disk
    assert rig.memory() == memory


@pytest.mark.parametrize(("after_ms", "is_over"), [(49, False), (50, True), (51, True)])
def test_resume_if_due_ends_a_pause_whose_time_is_over(
    rig: Rig, after_ms: int, is_over: bool
) -> None:
    pause(rig.engine, rig.queue, START_MS + 50)

    assert resume_if_due(rig.engine, rig.queue, START_MS + after_ms) is is_over

    assert paused_on_disk(rig) == (0 if is_over else START_MS + 50)
    assert not resume_if_due(rig.engine, rig.queue, START_MS + after_ms)


def test_resume_if_due_never_ends_a_pause_without_an_end(rig: Rig) -> None:
    pause(rig.engine, rig.queue, NEVER_MS)

    assert not resume_if_due(rig.engine, rig.queue, START_MS * 2)


def test_sweep_resumes_a_queue_at_its_time_and_says_so(rig: Rig) -> None:
    rig.add(b"a")
    pause(rig.engine, rig.queue, rig.now_ms + 50)
    assert rig.engine.agenda.next_ms() == rig.now_ms + 50
    rig.now_ms += 50

    assert rig.sweep_all() == [Sweep(QUEUE, expired=0, promoted=0, resumed=True)]

    assert paused_on_disk(rig) == 0
    assert rig.engine.agenda.next_ms() == NEVER_MS
