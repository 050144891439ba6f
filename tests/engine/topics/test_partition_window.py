"""Windows: what polls of one partition of a shared group get."""

from collections.abc import Iterator

import pytest

from queueber.model import GroupKind, Polled, QueueSettings, TopicSettings
from tests.support.topic_rig import TopicRig, places

PATIENT = QueueSettings(attempts_max=0, backoff_ms=(0, 0), isolation=False)


@pytest.fixture
def rig() -> Iterator[TopicRig]:
    rig = TopicRig(partitions=2)
    rig.create_group(kind=GroupKind.SHARED, leases=PATIENT)
    yield rig
    rig.close()


def offsets(polled: Polled) -> list[int]:
    return [offset for _, offset in places(polled)]


def publish(rig: TopicRig, count: int, partition: int = 0) -> None:
    rig.publish(*[b"x"] * count, partition=partition)


def test_windows_of_consumers_do_not_overlap_and_skip_nothing(rig: TopicRig) -> None:
    publish(rig, 100)

    given = [offsets(polled) for polled in rig.poll_many([7] * 20, partition=0)]

    assert [offset for each in given for offset in each] == [*range(100)]


def test_only_the_window_that_expired_comes_back(rig: TopicRig) -> None:
    publish(rig, 30)
    rig.poll(10, partition=0, lease_ms=5000)
    rig.poll(10, partition=0, lease_ms=1000)
    rig.poll(10, partition=0, lease_ms=5000)
    rig.now_ms += 1000
    rig.sweep()

    again = rig.poll(30, partition=0)

    assert offsets(again) == [*range(10, 20)]
    assert offsets(rig.poll(30, partition=0)) == []


def test_a_window_ends_before_what_another_consumer_has(rig: TopicRig) -> None:
    publish(rig, 12)
    lost = rig.poll(4, partition=0)
    rig.poll(4, partition=0, lease_ms=60_000)
    rig.release(lost)

    assert offsets(rig.poll(10, partition=0)) == [0, 1, 2, 3], "4 to 7 are leased"
    assert offsets(rig.poll(10, partition=0)) == [8, 9, 10, 11]


def test_a_window_goes_on_behind_what_is_done(rig: TopicRig) -> None:
    publish(rig, 12)
    first, second = rig.poll(4, partition=0), rig.poll(4, partition=0)
    rig.remove(second)
    rig.release(first)

    assert offsets(rig.poll(10, partition=0)) == [0, 1, 2, 3, 8, 9, 10, 11]


def test_a_window_ends_before_a_message_that_waits_for_its_next_attempt(rig: TopicRig) -> None:
    publish(rig, 6)
    polled = rig.poll(6, partition=0)
    rig.fail(polled, (0, 3), delay_ms=5000)
    rig.release(polled, (0, 0), (0, 1), (0, 2), (0, 4), (0, 5))

    assert offsets(rig.poll(10, partition=0)) == [0, 1, 2]
    assert offsets(rig.poll(10, partition=0)) == [4, 5]


def test_empty_polls_at_the_tail_reserve_nothing(rig: TopicRig) -> None:
    publish(rig, 2)
    assert rig.ack(2) == 2
    before = rig.dump()

    assert [polled.count for polled in rig.poll_many([5] * 10, partition=0)] == [0] * 10

    assert rig.dump() == before
    publish(rig, 3)
    assert offsets(rig.poll(10, partition=0)) == [2, 3, 4]


def test_messages_that_were_deleted_are_left_out_of_a_window() -> None:
    rig = TopicRig(TopicSettings(retention_messages=4))
    rig.create_group(kind=GroupKind.SHARED, leases=PATIENT)
    for _ in range(4):
        publish(rig, 2)
    rig.release(rig.poll(8, partition=0))
    publish(rig, 2)
    rig.sweep()

    assert offsets(rig.poll(20, partition=0)) == [*range(rig.topic.first_offset(0), 10)]
    assert rig.ack(10) == 10
    rig.close()


def test_a_window_has_not_both_sides_of_what_another_consumer_has(rig: TopicRig) -> None:
    publish(rig, 12)
    before, between, behind = (rig.poll(4, partition=0) for _ in range(3))
    rig.release(before)
    rig.release(behind)

    assert offsets(rig.poll(10, partition=0)) == [0, 1, 2, 3]
    assert offsets(rig.poll(10, partition=0)) == [8, 9, 10, 11]
    assert rig.remove(between) == [True] * 4
