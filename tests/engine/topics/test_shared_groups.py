"""Shared groups: leases of messages, by the rules of queues."""

import pytest

from queueber.engine.queue.add import add
from queueber.engine.queue.extend import extend
from queueber.engine.queue.peek import peek
from queueber.engine.queue.poll import poll
from queueber.engine.queue.redrive import redrive_first
from queueber.engine.topics import groups
from queueber.engine.topics.forks import fork
from queueber.engine.topics.trim import trim_topic
from queueber.errors import FailedPrecondition
from queueber.limits import COMPACT_AFTER_MS, MIB
from queueber.model import (
    FailOutcome,
    ForkAt,
    GroupKind,
    ItemState,
    NewItems,
    Position,
    QueueSettings,
    Start,
    TopicConfig,
    TopicSettings,
)
from tests.support.topic_rig import TOPIC, Place, TopicRig, places

SHARED = GroupKind.SHARED
QUICK = QueueSettings(backoff_ms=(0,), attempts_max=2)


def floors(rig: TopicRig) -> list[int]:
    group = groups.get_group(rig.topic, "g")
    return [groups.floor(rig.topic, group, each) for each in range(rig.topic.partitions)]


def counts(rig: TopicRig) -> tuple[int, int, int, int]:
    """Ready, delayed, leased and dead."""
    counters = rig.shared().counters
    return counters.ready, counters.delayed, counters.leased, counters.dead


def drain(rig: TopicRig) -> list[Place]:
    """All messages that polls of two get now."""
    found: list[Place] = []
    while polled := places(rig.poll(2)):
        found += polled
    return found


# --- leases ---------------------------------------------------------------------------------------


def test_consumers_get_different_messages_with_what_was_published(rig: TopicRig) -> None:
    rig.publish(b"a", b"b", b"c", partition=0, keys=["x", "", "y"])
    rig.create_group(kind=SHARED)
    first, second = rig.poll_many([2, 2])
    assert (places(first), places(second)) == ([(0, 0), (0, 1)], [(0, 2)])
    assert (list(first.contents), list(second.contents)) == ([b"a", b"b"], [b"c"])
    assert list(first.details.keys) == ["x", ""]
    assert rig.poll().count == 0
    assert counts(rig) == (0, 0, 3, 0)


def test_messages_of_all_partitions_are_polled_and_none_twice(rig: TopicRig) -> None:
    for partition in (0, 1, 1, 0):
        rig.publish(b"a", b"b", partition=partition)
    rig.create_group(kind=SHARED)
    assert sorted(drain(rig)) == [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (1, 2), (1, 3)]


def test_a_group_goes_on_after_a_restart_where_it_was(rig: TopicRig) -> None:
    rig.publish(b"a", b"b", b"c", b"d", partition=0)
    rig.create_group(kind=SHARED)
    polled = rig.poll(2)
    rig.reopen()
    assert rig.remove(polled) == [True, True]
    assert places(rig.poll(10)) == [(0, 2), (0, 3)]
    assert floors(rig) == [2, 0]


def test_the_floor_is_the_oldest_message_that_is_not_acknowledged(rig: TopicRig) -> None:
    rig.publish(*[b"x"] * 6, partition=1)
    rig.create_group(kind=SHARED, leases=QueueSettings(backoff_ms=(500,)))
    first, second = rig.poll_many([3, 2], lease_ms=10_000)
    assert floors(rig) == [0, 0]
    rig.remove(first, (1, 0), (1, 2))
    assert floors(rig) == [0, 1]
    rig.release(first, (1, 1))
    assert floors(rig) == [0, 1]
    rig.fail(second, (1, 3))
    assert floors(rig) == [0, 1]
    rig.now_ms += 1000
    rig.sweep()
    again = rig.poll(2)
    assert places(again) == [(1, 1), (1, 3)]
    rig.remove(again)
    assert floors(rig) == [0, 4]


def test_a_lease_runs_out_and_its_messages_are_leased_in_smaller_groups(rig: TopicRig) -> None:
    rig.publish(b"a", b"b", b"c", b"d", partition=0)
    rig.create_group(kind=SHARED, leases=QUICK)
    rig.poll(4)
    rig.now_ms += 1001
    rig.sweep()
    assert counts(rig) == (4, 0, 0, 0)
    assert places(rig.poll(4)) == [(0, 0), (0, 1)]


def test_a_lease_is_found_on_disk_when_it_runs_out_while_nobody_uses_the_topic(
    rig: TopicRig,
) -> None:
    rig.publish(b"a", b"b", partition=0)
    rig.create_group(kind=SHARED)
    rig.poll(2, lease_ms=100)
    rig.reopen()
    rig.now_ms += 61_000
    rig.sweep()
    assert counts(rig) == (2, 0, 0, 0)


def test_a_lease_that_was_extended_holds_its_messages(rig: TopicRig) -> None:
    rig.publish(b"a", partition=0)
    rig.create_group(kind=SHARED)
    polled = rig.poll()
    assert rig.run_on(rig.shared(), extend, [polled.lease_id], [5000]) == [True]
    rig.now_ms += 4999
    rig.sweep()
    assert rig.remove(polled) == [True]


def test_messages_that_fail_too_often_are_dead_until_they_are_redriven(rig: TopicRig) -> None:
    rig.publish(b"a", b"b", partition=0)
    rig.create_group(kind=SHARED, leases=QUICK)
    assert rig.fail(rig.poll(2), (0, 0)) == [FailOutcome.RETRIED]
    assert rig.fail(rig.poll(2)) == [FailOutcome.DIED]
    assert counts(rig) == (0, 0, 1, 1)
    assert floors(rig) == [1, 0]
    (letter,), _ = peek(rig.store, rig.shared(), ItemState.DEAD, b"", 10, MIB)
    assert (letter.contents, letter.last_error, letter.added_at_ms) == (
        b"a",
        "it failed",
        rig.now_ms,
    )
    assert rig.run_on(rig.shared(), redrive_first, 10) == (1, False)
    assert places(rig.poll(2)) == [(0, 0)]


def test_only_so_many_messages_are_leased_at_once(rig: TopicRig) -> None:
    rig.publish(*[b"x"] * 9, partition=0)
    rig.create_group(kind=SHARED, in_flight_max=3)
    first, second, third = rig.poll_many([2, 2, 2])
    assert (first.count, second.count, third.count) == (2, 1, 0)
    assert rig.poll(1).count == 0
    rig.remove(first, (0, 1))
    assert places(rig.poll(5)) == [(0, 3)]


def test_a_paused_group_gets_nothing_until_it_goes_on(rig: TopicRig) -> None:
    rig.publish(b"a", partition=0)
    group = rig.create_group(kind=SHARED)
    rig.run(groups.pause_group, rig.topic, group, rig.now_ms + 1000)
    assert rig.poll().count == 0
    rig.reopen()
    assert rig.poll().count == 0
    rig.now_ms += 1000
    rig.sweep()
    assert rig.shared().paused_until_ms == 0
    assert groups.get_group(rig.topic, "g").record.paused_until_ms == 0
    assert rig.poll().count == 1


def test_polls_keep_a_topic_alive_that_is_deleted_when_nobody_uses_it() -> None:
    rig = TopicRig(TopicSettings(ttl_ms=1600))
    try:
        rig.publish(*[b"x"] * 5)
        rig.create_group(kind=SHARED)
        for _ in range(5):
            rig.now_ms += 1500
            rig.sweep()
            assert rig.remove(rig.poll()) == [True]
        queue = rig.shared()
        rig.now_ms += 1600
        rig.run_on(queue, lambda tx: poll(tx, [1], lease_ms=1000, answer_bytes_max=MIB))
        assert rig.topics.find(TOPIC) is not None
        rig.sweep()
        assert rig.topics.find(TOPIC) is None, "a poll does not revive what has expired"
    finally:
        rig.close()


def test_nothing_can_be_added_to_a_group(rig: TopicRig) -> None:
    rig.create_group(kind=SHARED)
    with pytest.raises(FailedPrecondition, match="'t/g' is a group"):
        rig.run_on(rig.shared(), add, NewItems([b"x"]))


def test_an_ordered_group_has_no_leases(rig: TopicRig) -> None:
    rig.create_group()
    with pytest.raises(FailedPrecondition, match="group 'g' is of kind 'ordered'"):
        rig.poll()


# --- reset and delete -----------------------------------------------------------------------------


def test_a_reset_ends_leases_and_retries_of_its_partition_and_keeps_dead_letters(
    rig: TopicRig,
) -> None:
    rig.publish(b"a", b"b", b"c", b"d", partition=0)
    rig.publish(b"e", partition=1)
    group = rig.create_group(kind=SHARED, leases=QueueSettings(attempts_max=1))
    polled = rig.poll(5)
    rig.fail(polled, (0, 1))
    rig.release(polled, (0, 2))
    rig.run(groups.reset_group, rig.topic, group, 0, Position())
    assert counts(rig) == (0, 0, 1, 1)
    assert rig.remove(polled, (0, 0), (1, 0)) == [False, True]
    assert sorted(drain(rig)) == [(0, 0), (0, 2), (0, 3)], "a dead letter is not polled again"
    assert floors(rig) == [0, 1]
    rig.run(groups.reset_group, rig.topic, group, None, Position(Start.LATEST))
    assert (drain(rig), counts(rig), floors(rig)) == ([], (0, 0, 0, 1), [4, 1])
    assert rig.shared().counters.contents_bytes == 1


def test_dead_letters_behind_a_reset_group_are_delivered_once_when_they_are_redriven(
    rig: TopicRig,
) -> None:
    rig.publish(b"a", b"b", b"c", b"d", partition=0)
    group = rig.create_group(kind=SHARED, leases=QueueSettings(attempts_max=1))
    rig.fail(rig.poll(4), (0, 0), (0, 1), (0, 2))
    rig.run(groups.reset_group, rig.topic, group, 0, Position(Start.OFFSET, 1))

    assert rig.run_on(rig.shared(), redrive_first, 10) == (3, False)

    assert counts(rig) == (1, 0, 0, 0)
    assert rig.shared().counters.contents_bytes == 1
    assert drain(rig) == [(0, 0), (0, 1), (0, 2), (0, 3)]


def test_a_deleted_shared_group_leaves_nothing(rig: TopicRig) -> None:
    rig.publish(b"a", b"b", b"c", partition=0)
    before = rig.dump()
    group = rig.create_group(kind=SHARED, leases=QUICK)
    queue = group.queue
    rig.fail(rig.poll(2), (0, 0))
    rig.run(groups.delete_group, rig.topics, rig.topic, group)
    assert {**rig.dump(), "default": []} == {**before, "default": []}
    assert queue.is_deleted
    rig.create_group(kind=SHARED)
    assert counts(rig) == (0, 0, 0, 0)
    rig.now_ms += 100_000
    rig.sweep()


def test_the_description_of_a_shared_group(rig: TopicRig) -> None:
    rig.publish(b"a", b"b", b"c", partition=0)
    rig.now_ms += 10
    rig.publish(b"d", partition=1)
    group = rig.create_group(kind=SHARED, leases=QueueSettings(attempts_max=1))
    polled = rig.poll(2, name="g")
    if places(polled)[0][0] == 1:
        polled = rig.poll(2)
    rig.fail(polled, (0, 0))
    info = groups.group_info(rig.store, rig.topic, group, rig.now_ms + 5)
    assert (info.cursors, info.lag, info.lag_ms, info.leased, info.dead) == ([1, 0], 3, 15, 1, 1)


# --- messages that the topic deletes --------------------------------------------------------------


def test_messages_that_are_deleted_vanish_but_one_that_is_leased_can_be_acknowledged(
    rig: TopicRig,
) -> None:
    rig.publish(*[bytes([at]) * 7 for at in range(6)], partition=0)
    rig.create_group(kind=SHARED, leases=QueueSettings(backoff_ms=(60_000,), attempts_max=2))
    rig.fail(rig.poll(6), (0, 0), delay_ms=0)
    rig.fail(rig.poll(1))
    polled = rig.poll_many([1])[0]
    assert polled.count == 0
    rig.now_ms += 1001
    rig.sweep()
    assert counts(rig) == (5, 0, 0, 1)
    held = rig.poll(2)
    assert places(held) == [(0, 1), (0, 2)]
    rig.fail(held, (0, 1))
    assert counts(rig) == (3, 1, 1, 1)
    rig.run(trim_topic, rig.topic, 0, Position(Start.OFFSET, 4))
    assert places(rig.poll(1)) == [(0, 4)]
    rig.sweep()
    assert counts(rig) == (1, 0, 2, 0)
    assert rig.remove(held) == [False, True]
    assert rig.shared().counters.contents_bytes == 14
    assert rig.shared().counters.cancelled_total == 3
    assert floors(rig) == [4, 0]


def test_messages_that_were_deleted_before_anybody_had_them_are_missed(rig: TopicRig) -> None:
    rig.publish(*[b"x"] * 5, partition=0)
    rig.create_group(kind=SHARED)
    rig.run(trim_topic, rig.topic, 0, Position(Start.OFFSET, 3))
    assert places(rig.poll(1)) == [(0, 3)]
    assert rig.shared().counters.cancelled_total == 3
    assert floors(rig) == [3, 0]


def test_a_dead_letter_that_is_deleted_is_not_seen_by_peek(rig: TopicRig) -> None:
    rig.publish(b"a", b"b", partition=0)
    rig.create_group(kind=SHARED, leases=QueueSettings(attempts_max=1))
    rig.fail(rig.poll(2))
    rig.run(trim_topic, rig.topic, 0, Position(Start.OFFSET, 1))
    found, _ = peek(rig.store, rig.shared(), ItemState.DEAD, b"", 10, MIB)
    assert [each.contents for each in found] == [b"b"]


def test_messages_that_were_replaced_are_skipped() -> None:
    rig = TopicRig(TopicSettings(keeps_last_per_key=True))
    rig.create_group(kind=SHARED)
    rig.publish(*[b"x"] * 4, keys=["a", "b", "c", "d"])
    held = rig.poll(3, lease_ms=10**6)
    rig.release(held, (0, 1), (0, 2))
    rig.publish(b"y", b"z", keys=["b", "d"])
    rig.now_ms += COMPACT_AFTER_MS
    rig.sweep()
    assert drain(rig) == [(0, 2), (0, 4), (0, 5)]
    assert counts(rig) == (0, 0, 4, 0)
    assert rig.shared().counters.cancelled_total == 1, "the one that came back"
    rig.close()


def test_messages_that_all_groups_acknowledged_are_known() -> None:
    rig = TopicRig(TopicSettings(deletes_acknowledged=True))
    rig.publish(b"a", b"b", b"c")
    ordered = rig.create_group("ordered")
    rig.create_group(kind=SHARED)
    rig.remove(rig.poll(2))
    assert groups.acknowledged(rig.topic, 0) == 0
    rig.run(groups.acknowledge, rig.topic, ordered, 0, 3)
    assert groups.acknowledged(rig.topic, 0) == 2
    rig.remove(rig.poll())
    rig.now_ms += 1000
    rig.sweep()
    assert (rig.topic.first_offset(0), rig.topic.next_offset(0)) == (3, 3)
    rig.close()


def test_a_deleted_topic_leaves_nothing_of_its_groups(rig: TopicRig) -> None:
    rig.run(rig.queues.create, "q", QueueSettings())
    rig.publish(b"a", b"b", b"c", partition=0)
    rig.create_group("ordered")
    rig.create_group(kind=SHARED, leases=QUICK)
    rig.create_group("bridge", GroupKind.QUEUE, queue="q")
    rig.fail(rig.poll(2), (0, 0))
    rig.run(rig.topics.delete, rig.topic)
    rig.sweep()
    left = {name for name, entries in rig.dump().items() if entries}
    assert left == {"default", "queues", "counters"}, "what the store and the queue have"


# --- forks ----------------------------------------------------------------------------------------


def test_a_group_of_a_fork_has_the_messages_of_both_logs(rig: TopicRig) -> None:
    rig.publish(b"a", b"b", b"c", b"d", partition=0)
    rig.run(fork, rig.topics, rig.topic, "f", TopicConfig(), ForkAt(0, 2))
    made = rig.topics.get("f", rig.now_ms)
    rig.run(rig.topics.delete, rig.topic)

    rig.name = "f"
    rig.publish(b"e", b"f", partition=0)
    rig.create_group(kind=SHARED)
    polled = rig.poll(10)
    assert made is rig.topic
    assert places(polled) == [(0, 0), (0, 1), (0, 2), (0, 3)]
    assert list(polled.contents) == [b"a", b"b", b"e", b"f"]
    rig.release(polled)
    again = rig.poll(10)
    assert list(again.contents) == [b"a", b"b", b"e", b"f"]
    rig.remove(again, (0, 1), (0, 2))
    rig.release(again, (0, 0), (0, 3))
    assert list(rig.poll(10).contents) == [b"a", b"f"]
