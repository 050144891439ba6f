"""Trim by hand, also inside what was published together."""

import pytest

from queueber.engine.topics.trim import trim_topic
from queueber.errors import OutOfRange
from queueber.model import Position, Start
from tests.support.topic_rig import TopicRig


def test_a_trim_may_end_inside_what_was_published_together(rig: TopicRig) -> None:
    rig.publish(b"a", b"b", b"c", partition=0)
    rig.publish(b"d", partition=0)

    assert rig.run(trim_topic, rig.topic, 0, Position(Start.OFFSET, 2)) == 2
    assert rig.read() == [(2, b"c"), (3, b"d")]
    assert rig.run(trim_topic, rig.topic, 0, Position(Start.OFFSET, 3)) == 1
    assert rig.read() == [(3, b"d")]
    rig.reopen()
    assert rig.read() == [(3, b"d")]


def test_a_trim_of_everything_keeps_where_the_topic_goes_on(rig: TopicRig) -> None:
    rig.publish(b"a", b"b", partition=0)

    assert rig.run(trim_topic, rig.topic, 0, Position(Start.LATEST)) == 2

    assert rig.read() == []
    assert list(rig.publish(b"c", partition=0).offsets) == [2]
    assert rig.read() == [(2, b"c")]


def test_a_trim_to_where_the_topic_begins_deletes_nothing(rig: TopicRig) -> None:
    rig.publish(b"a", partition=0)
    before = rig.dump()

    assert rig.run(trim_topic, rig.topic, None, Position(Start.EARLIEST)) == 0
    assert rig.dump() == before


def test_a_trim_of_all_partitions_to_a_time(rig: TopicRig) -> None:
    for partition in (0, 1):
        rig.publish(b"old", partition=partition)
    rig.now_ms += 1000
    for partition in (0, 1):
        rig.publish(b"new", partition=partition)

    assert rig.run(trim_topic, rig.topic, None, Position(Start.TIME, rig.now_ms)) == 2
    assert [rig.read(each) for each in (0, 1)] == [[(1, b"new")]] * 2


def test_a_trim_past_the_end_is_refused(rig: TopicRig) -> None:
    rig.publish(b"a", partition=0)

    with pytest.raises(OutOfRange, match="from 0 up to 1"):
        rig.run(trim_topic, rig.topic, 0, Position(Start.OFFSET, 2))
