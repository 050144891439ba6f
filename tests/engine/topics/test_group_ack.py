"""A shared group that acknowledges up to an offset, and where it begins a partition."""

from collections.abc import Iterator

import pytest

from queueber.engine.queue.redrive import redrive_first
from queueber.engine.topics import group_ack
from queueber.engine.topics.group_ack import begin
from queueber.engine.topics.groups import create_group, get_group
from queueber.errors import InvalidArgument, OutOfRange, ResourceExhausted
from queueber.model import (
    GroupKind,
    GroupSettings,
    Polled,
    Position,
    QueueSettings,
    Start,
)
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


def test_an_acknowledgement_covers_what_others_have_leased(rig: TopicRig) -> None:
    publish(rig, 400)
    first, second = rig.poll(200, partition=0), rig.poll(200, partition=0)
    assert (offsets(first), offsets(second)) == ([*range(200)], [*range(200, 400)])

    assert rig.ack(400) == 400

    assert rig.ack(200) == 400, "it does not go back"
    assert rig.remove(first) == [False] * 200
    assert rig.shared().counters.leased == 0
    assert rig.shared().counters.removed_total == 400
    rig.now_ms += 10_000
    rig.sweep()
    assert offsets(rig.poll(10, partition=0)) == []


def test_an_acknowledgement_moves_over_what_nobody_has_had(rig: TopicRig) -> None:
    publish(rig, 10)

    assert rig.ack(6) == 6

    assert offsets(rig.poll(10, partition=0)) == [6, 7, 8, 9]


def test_other_partitions_are_left_alone(rig: TopicRig) -> None:
    publish(rig, 3, 0)
    publish(rig, 3, 1)
    both = rig.poll(6)

    rig.ack(3, 0)

    assert rig.remove(both) == [place[0] == 1 for place in places(both)]
    assert rig.ack(0, 1) == 3


def test_dead_letters_stay_and_can_be_redriven() -> None:
    rig = TopicRig()
    rig.create_group(kind=GroupKind.SHARED, leases=QueueSettings(attempts_max=1))
    publish(rig, 3)
    polled = rig.poll(3, partition=0)
    rig.fail(polled, (0, 1))

    assert rig.ack(3) == 3

    assert rig.shared().counters.dead == 1
    rig.run_on(rig.shared(), redrive_first, 10)
    assert offsets(rig.poll(5, partition=0)) == [1]
    assert rig.ack(3) == 3
    assert rig.shared().counters.leased == 0
    rig.close()


def test_the_answer_is_where_the_group_goes_on(rig: TopicRig) -> None:
    publish(rig, 9)
    polled = rig.poll(9, partition=0)
    rig.remove(polled, (0, 3), (0, 4))

    assert rig.ack(3) == 5
    assert rig.ack(0) == 5


def test_an_acknowledgement_is_kept_over_a_restart(rig: TopicRig) -> None:
    publish(rig, 20)
    rig.poll(5, partition=0, lease_ms=60_000)
    rig.poll(5, partition=0, lease_ms=60_000)
    rig.ack(5)

    rig.reopen()

    assert rig.ack(0) == 5
    assert offsets(rig.poll(50, partition=0)) == [*range(10, 20)], "5 to 9 are leased"
    assert rig.ack(20) == 20
    assert rig.shared().counters.leased == 0


def test_an_offset_outside_the_log_changes_nothing(rig: TopicRig) -> None:
    publish(rig, 3)
    rig.poll(2, partition=0)
    before = rig.dump()

    with pytest.raises(OutOfRange, match="offset is 4; partition 0 of topic 't' has messages"):
        rig.ack(4)
    with pytest.raises(InvalidArgument, match="partition"):
        rig.ack(0, 2)

    assert rig.dump() == before


@pytest.mark.parametrize("is_leased", [True, False])
def test_too_many_messages_are_refused_and_a_lower_offset_is_taken(
    rig: TopicRig, monkeypatch: pytest.MonkeyPatch, *, is_leased: bool
) -> None:
    monkeypatch.setattr(group_ack, "GROUP_ACK_MAX", 50)
    publish(rig, 100)
    for _ in range(10):
        polled = rig.poll(10, partition=0)
        if not is_leased:
            rig.release(polled)
            rig.poll(10, partition=0, lease_ms=1)
    rig.now_ms += 0 if is_leased else 10
    rig.sweep()
    before = rig.dump()

    with pytest.raises(ResourceExhausted, match="acknowledge a lower offset first"):
        rig.ack(100)

    assert rig.dump() == before
    assert rig.ack(50) == 50
    assert rig.ack(100) == 100


def test_a_group_begins_each_partition_by_itself(rig: TopicRig) -> None:
    publish(rig, 9, 0)
    publish(rig, 9, 1)
    settings = GroupSettings(GroupKind.SHARED, leases=PATIENT)
    at = Position(Start.OFFSET, 4)
    group, _ = rig.run(create_group, rig.topics, rig.topic, "h", settings, at, partition=1)

    assert offsets(rig.poll(20, name="h", partition=1)) == [4, 5, 6, 7, 8]

    rig.reopen()
    group = get_group(rig.topic, "h")
    for where in (Position(Start.LATEST), Position(Start.EARLIEST)):
        rig.run_on(group.queue, begin, rig.topic, group, 0, where)
    assert offsets(rig.poll(20, name="h", partition=0)) == []
    publish(rig, 1, 0)
    assert offsets(rig.poll(20, name="h", partition=0)) == [9]
