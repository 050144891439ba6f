"""Statistics of a queue: every state and every total, exactly."""

import pytest

from queueber.db.families import Family
from queueber.db.records.keys import NEVER_MS
from queueber.model import FailOutcome, NewItems, QueueSettings, Stats
from tests.support.operations import cancel, configure_queue, pause, queue_stats, redrive
from tests.support.rig import QUEUE, START_MS, Rig

SETTINGS = QueueSettings(backoff_ms=(0,), items_max=5, bytes_max=1000, item_bytes_max=100)


def test_queue_stats_count_every_state_and_every_total(rig: Rig) -> None:
    configure_queue(rig.engine, QUEUE, SETTINGS, rig.now_ms)
    rig.add(b"1", b"22", b"333", b"4444", b"55555", delays_ms=[0, 0, 0, 0, 900])
    one, two = rig.poll_many([1, 2], lease_ms=50)
    rig.extend(two.lease_id, 500)
    rig.remove(two.ids[:1], two.lease_id)
    rig.now_ms += 60
    rig.sweep_all()

    stats = queue_stats(rig.engine, rig.queue, waiting_polls=7, now_ms=rig.now_ms)

    assert one.contents == [b"1"]
    assert stats == Stats(
        name=QUEUE,
        settings=SETTINGS,
        created_at_ms=START_MS,
        ready=2,
        delayed=1,
        leased=1,
        dead=0,
        leases=1,
        contents_bytes=1 + 3 + 4 + 5,
        oldest_claimable_age_ms=60,
        waiting_polls=7,
        paused_until_ms=0,
        results=0,
        result_bytes=0,
        batches=0,
        added_total=5,
        polled_total=3,
        removed_total=1,
        completed_total=0,
        failed_total=1,
        released_total=0,
        expired_total=1,
        extended_total=1,
        died_total=0,
        redriven_total=0,
        cancelled_total=0,
        duplicates_total=0,
    )


def test_queue_stats_count_outcomes_dead_letters_batches_and_results(rig: Rig) -> None:
    """Each item goes another way, and is of another size: the bytes tell which are still here."""
    settings = QueueSettings(attempts_max=1)
    configure_queue(rig.engine, QUEUE, settings, rig.now_ms)
    contents = [b"x" * size for size in (1, 2, 4, 8, 16)]
    ids = rig.add_items(NewItems(contents, keys=["k", "", "", "", ""], batch="b")).ids
    assert rig.add_items(NewItems([b"again"], keys=["k"])).ids == ids[:1]
    polled = rig.poll(5)
    lease = polled.lease_id
    rig.complete(ids[:1], lease, [b"result"])
    assert rig.fail(ids[1:3], lease) == [FailOutcome.DIED] * 2
    rig.release(ids[3:4], lease)
    redrive(rig.engine, rig.queue, ids[1:2], rig.now_ms)
    cancel(rig.engine, rig.queue, ids[4:], rig.now_ms)
    pause(rig.engine, rig.queue, rig.now_ms + 500)
    rig.now_ms += 10

    stats = rig.stats()

    assert stats == Stats(
        name=QUEUE,
        settings=settings,
        created_at_ms=START_MS,
        ready=2,
        delayed=0,
        leased=0,
        dead=1,
        leases=0,
        contents_bytes=2 + 4 + 8,
        oldest_claimable_age_ms=0,
        waiting_polls=0,
        paused_until_ms=START_MS + 500,
        results=1,
        result_bytes=rig.queue.results.head.end_position,
        batches=1,
        added_total=5,
        polled_total=5,
        removed_total=0,
        completed_total=1,
        failed_total=2,
        released_total=1,
        expired_total=0,
        extended_total=0,
        died_total=2,
        redriven_total=1,
        cancelled_total=1,
        duplicates_total=1,
    )
    rig.assert_sound()


@pytest.mark.parametrize("until_ms", [START_MS + 10, NEVER_MS])
def test_queue_stats_of_a_paused_queue_have_no_claimable_age_until_its_time(
    rig: Rig, until_ms: int
) -> None:
    rig.add(b"a")
    pause(rig.engine, rig.queue, until_ms)
    rig.now_ms += 9
    assert (rig.stats().paused_until_ms, rig.stats().oldest_claimable_age_ms) == (until_ms, 0)

    rig.now_ms += 1

    expected = (until_ms, 0) if until_ms == NEVER_MS else (0, 10)
    assert (rig.stats().paused_until_ms, rig.stats().oldest_claimable_age_ms) == expected


def test_queue_stats_age_is_of_the_oldest_whatever_its_priority(rig: Rig) -> None:
    rig.add_items(NewItems([b"low"], priorities=[0]))
    rig.now_ms += 30
    rig.add_items(NewItems([b"high"], priorities=[9]))

    assert rig.stats().oldest_claimable_age_ms == 30


def test_queue_stats_age_is_that_of_the_oldest_ready_item(rig: Rig) -> None:
    rig.add(b"first")
    rig.now_ms += 30
    rig.add(b"second")
    rig.now_ms += 5
    assert rig.stats().oldest_claimable_age_ms == 35

    rig.poll()

    assert rig.stats().oldest_claimable_age_ms == 5


def test_queue_stats_age_with_nothing_ready_or_a_clock_behind_is_zero(rig: Rig) -> None:
    assert rig.stats().oldest_claimable_age_ms == 0

    rig.add(b"a")
    rig.now_ms -= 1000

    assert rig.stats().oldest_claimable_age_ms == 0


def test_queue_stats_after_a_reopen_find_the_oldest_again(rig: Rig) -> None:
    rig.add(b"a", b"b")
    rig.poll()
    rig.now_ms += 12

    rig.reopen()

    assert rig.stats().oldest_claimable_age_ms == 12
    assert Family.VISIBILITY_INDEX.family_name in rig.dump()
