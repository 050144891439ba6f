"""Fail: only what a live lease holds is charged, and the answer says what became of each."""

import pytest

from queueber.db.families import Family
from queueber.db.records.attempts import decode_attempts
from queueber.model import FailOutcome, QueueSettings
from tests.engine.making import allow_attempts, come_back_at_once, mark_of, whereabouts
from tests.support.operations import create_queue, fail
from tests.support.rig import Rig

REFUSED, RETRIED, DIED = FailOutcome.REFUSED, FailOutcome.RETRIED, FailOutcome.DIED


def test_fail_of_some_answers_each_in_the_order_asked(rig: Rig) -> None:
    ids = rig.add(b"a", b"b", b"c", b"d")
    one, two = (polled.lease_id for polled in rig.poll_many([2, 2]))

    outcomes = fail(
        rig.engine,
        rig.queue,
        [ids[3], ids[0], bytes(16), ids[2], ids[0]],
        [two, one, one, one, one],
        ["first", "second", "third", "fourth", "fifth"],
        [0, 50, 0, 0, 0],
        rig.now_ms,
    )

    assert outcomes == [RETRIED, RETRIED, REFUSED, REFUSED, REFUSED]
    assert [whereabouts(rig, item_id)[0] for item_id in ids] == [
        Family.DELAYED,
        Family.LEASES,
        Family.LEASES,
        Family.VISIBILITY_INDEX,
    ]
    errors = {key[4:]: decode_attempts(value).last_error for key, value in rig.dump()["attempts"]}
    assert errors == {ids[0]: "second", ids[3]: "first"}
    assert rig.stats().failed_total == 2
    rig.assert_sound()


def test_fail_hides_the_item_until_its_delay_is_over(rig: Rig) -> None:
    (item_id,) = rig.add(b"a")
    polled = rig.poll()

    assert rig.fail(polled.ids, polled.lease_id, delay_ms=100) == [RETRIED]

    rig.now_ms += 99
    rig.sweep_all()
    assert rig.poll().ids == []
    rig.now_ms += 1
    rig.sweep_all()
    again = rig.poll()
    assert (again.ids, again.details.attempts) == ([item_id], [2])
    rig.assert_sound()


@pytest.mark.parametrize("attempts_max", [1, 2, 5])
def test_fail_as_often_as_the_queue_allows_ends_as_a_dead_letter(
    rig: Rig, attempts_max: int
) -> None:
    allow_attempts(rig, attempts_max)
    (item_id,) = rig.add(b"a")

    outcomes = []
    while (polled := rig.poll()).ids:
        outcomes += rig.fail(polled.ids, polled.lease_id, delay_ms=0)

    assert outcomes == [RETRIED] * (attempts_max - 1) + [DIED]
    assert whereabouts(rig, item_id)[0] is Family.DEAD
    assert mark_of(rig, item_id).attempts == attempts_max
    assert (rig.stats().dead, rig.stats().ready, rig.stats().delayed) == (1, 0, 0)
    rig.assert_sound()


def test_fail_of_a_lease_of_both_retried_and_dead_tells_them_apart(rig: Rig) -> None:
    allow_attempts(rig, 2)
    (old,) = rig.add(b"old")
    polled = rig.poll()
    rig.fail(polled.ids, polled.lease_id, delay_ms=0)
    (new,) = rig.add(b"new")
    polled = rig.poll(2)

    assert rig.fail([new, old], polled.lease_id, delay_ms=0) == [RETRIED, DIED]

    rig.assert_sound()


def test_fail_after_the_limit_was_lowered_below_what_was_failed_is_death(rig: Rig) -> None:
    (item_id,) = rig.add(b"a")
    for _ in range(3):
        polled = rig.poll()
        rig.fail(polled.ids, polled.lease_id, delay_ms=0)
    allow_attempts(rig, 2)
    polled = rig.poll()

    assert rig.fail(polled.ids, polled.lease_id) == [DIED]

    assert mark_of(rig, item_id).attempts == 4
    rig.assert_sound()


@pytest.mark.parametrize("why", ["expired", "unknown lease", "unknown id", "another queue"])
def test_fail_that_is_refused_changes_nothing(rig: Rig, why: str) -> None:
    create_queue(rig.engine, "other", QueueSettings(), rig.now_ms)
    rig.add(b"a", b"b")
    polled = rig.poll(2, lease_ms=100)
    queue = rig.engine.queues.get("other") if why == "another queue" else rig.queue
    ids = [bytes(16)] * 2 if why == "unknown id" else polled.ids
    lease = bytes(16) if why == "unknown lease" else polled.lease_id
    if why == "expired":
        rig.now_ms += 100
    disk, memory = rig.dump(), rig.memory()

    outcomes = fail(rig.engine, queue, ids, [lease] * 2, ["", ""], [None] * 2, rig.now_ms)

    assert outcomes == [REFUSED] * 2
    assert rig.dump() == disk
    assert rig.memory() == memory


def test_fail_by_the_first_holder_after_another_got_the_item_is_refused(rig: Rig) -> None:
    come_back_at_once(rig)
    rig.add(b"a")
    first = rig.poll(lease_ms=10)
    rig.now_ms += 10
    rig.sweep_all()
    second = rig.poll()
    disk = rig.dump()

    assert rig.fail(first.ids, first.lease_id) == [REFUSED]

    assert rig.dump() == disk
    assert rig.fail(second.ids, second.lease_id) == [RETRIED]
