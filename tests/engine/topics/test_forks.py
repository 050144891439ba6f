"""Forks: messages that are shared, and parents that outlive their deletion."""

import pytest

from queueber.engine.topics.describe import topic_info
from queueber.engine.topics.forks import fork
from queueber.engine.topics.publish import publish
from queueber.engine.topics.read import find_id, find_sequence, read
from queueber.engine.topics.topic_state import TopicState
from queueber.engine.topics.trim import trim_topic
from queueber.errors import AlreadyExists, FailedPrecondition, NotFound, OutOfRange
from queueber.limits import MIB
from queueber.model import Bounds, ForkAt, NewMessages, Position, Publication, Start, TopicConfig
from tests.support.topic_rig import TOPIC, TopicRig


def make_fork(rig: TopicRig, of: str, name: str, offset: int) -> TopicState:
    parent = rig.topics.get(of, rig.now_ms)
    return rig.run(fork, rig.topics, parent, name, TopicConfig(), ForkAt(0, offset))[0]


def append(rig: TopicRig, name: str, *payloads: bytes) -> None:
    topic = rig.topics.get(name, rig.now_ms)
    rig.run(publish, rig.topics, [(topic, Publication(name, NewMessages(payloads), 0))])


def contents(rig: TopicRig, name: str) -> bytes:
    """All payloads of partition 0, one byte each."""
    topic = rig.topics.get(name, rig.now_ms)
    found = read(rig.store, topic, 0, topic.first_offset(0), Bounds(100, MIB))
    assert found.next_offset == topic.next_offset(0)
    return b"".join([each.payloads for each in found.packed])


def test_a_fork_shares_messages_up_to_an_offset_and_goes_its_own_way(rig: TopicRig) -> None:
    append(rig, TOPIC, b"a", b"b", b"c")

    made = make_fork(rig, TOPIC, "fork", 2)
    append(rig, TOPIC, b"d")
    append(rig, "fork", b"X", b"Y")

    assert (contents(rig, TOPIC), contents(rig, "fork")) == (b"abcd", b"abXY")
    assert (made.first_offset(0), made.next_offset(0)) == (0, 4)
    assert topic_info(made, rig.topics).parent == TOPIC


def test_a_fork_of_a_fork_reads_through_all_its_ancestors(rig: TopicRig) -> None:
    append(rig, TOPIC, b"a", b"b")
    name = TOPIC
    for depth in range(10):
        make_fork(rig, name, f"fork{depth}", depth + 2)
        name = f"fork{depth}"
        append(rig, name, b"%d" % depth)

    assert contents(rig, name) == b"ab0123456789"
    make_fork(rig, name, "early", 1)
    assert contents(rig, "early") == b"a"


def test_a_fork_is_there_after_a_restart(rig: TopicRig) -> None:
    append(rig, TOPIC, b"a", b"b")
    make_fork(rig, TOPIC, "fork", 1)
    append(rig, "fork", b"X")
    rig.reopen()

    assert contents(rig, "fork") == b"aX"


def test_a_deleted_parent_stays_until_its_last_fork_is_gone(rig: TopicRig) -> None:
    append(rig, TOPIC, b"a")
    make_fork(rig, TOPIC, "one", 1)
    make_fork(rig, "one", "two", 1)
    rig.run(rig.topics.delete, rig.topic)
    rig.run(rig.topics.delete, rig.topics.get("one", rig.now_ms))
    rig.sweep()

    with pytest.raises(NotFound, match="kept only for its forks"):
        rig.topic  # noqa: B018  refuses
    with pytest.raises(AlreadyExists, match="its forks still need its messages"):
        rig.run(rig.topics.create, TOPIC, TopicConfig().settings)
    assert contents(rig, "two") == b"a"

    rig.run(rig.topics.delete, rig.topics.get("two", rig.now_ms))
    rig.sweep()

    assert [rig.topics.find(name) for name in (TOPIC, "one", "two")] == [None] * 3
    assert rig.topics.count == 0


def test_a_topic_with_forks_is_not_trimmed_until_they_are_gone(rig: TopicRig) -> None:
    append(rig, TOPIC, b"a", b"b")
    made = make_fork(rig, TOPIC, "fork", 1)
    position = Position(Start.OFFSET, 1)

    with pytest.raises(
        FailedPrecondition,
        match=r"has forks, which share its messages; delete them first \[forks=1\]",
    ):
        rig.run(trim_topic, rig.topic, 0, position)

    rig.run(rig.topics.delete, made)
    assert rig.run(trim_topic, rig.topic, 0, position) == 1


def test_a_fork_can_be_trimmed_inside_what_it_shares(rig: TopicRig) -> None:
    append(rig, TOPIC, b"a", b"b", b"c")
    made = make_fork(rig, TOPIC, "fork", 3)
    append(rig, "fork", b"X", b"Y")

    assert rig.run(trim_topic, made, 0, Position(Start.OFFSET, 2)) == 2
    assert contents(rig, "fork") == b"cXY"
    assert rig.run(trim_topic, made, 0, Position(Start.OFFSET, 4)) == 2
    assert contents(rig, "fork") == b"Y"
    assert contents(rig, TOPIC) == b"abc"


@pytest.mark.parametrize("offset", [4, 100])
def test_a_fork_past_the_end_is_refused(rig: TopicRig, offset: int) -> None:
    append(rig, TOPIC, b"a", b"b", b"c")
    before = rig.dump()

    with pytest.raises(OutOfRange, match="from 0 up to 3"):
        make_fork(rig, TOPIC, "fork", offset)

    assert rig.dump() == before


def test_a_fork_that_is_asked_for_twice_is_made_once(rig: TopicRig) -> None:
    append(rig, TOPIC, b"a", b"b")
    first = make_fork(rig, TOPIC, "fork", 1)
    append(rig, "fork", b"X")

    assert make_fork(rig, TOPIC, "fork", 1) is first
    assert rig.topic.record.forks == 1
    with pytest.raises(AlreadyExists, match="choose another name"):
        make_fork(rig, TOPIC, "fork", 2)


def test_without_an_offset_a_fork_begins_where_each_partition_ends(rig: TopicRig) -> None:
    rig.publish(b"a", b"b", partition=0)
    rig.publish(b"c", partition=1)

    made = rig.run(fork, rig.topics, rig.topic, "fork", TopicConfig())[0]

    assert [made.next_offset(each) for each in range(2)] == [2, 1]
    assert [made.first_offset(each) for each in range(2)] == [0, 0]


def test_messages_of_the_parent_behind_the_fork_are_not_found_in_it(rig: TopicRig) -> None:
    of_parent = rig.publish(*[b"a"] * 10, partition=0)
    made = make_fork(rig, TOPIC, "fork", 5)
    append(rig, "fork", *[b"X"] * 10)

    found = [find_id(rig.store, made, each) for each in of_parent.ids]
    next_ones = [find_sequence(rig.store, made, 0, each) for each in of_parent.sequences]

    assert found == [*[(0, offset) for offset in range(5)], *[None] * 5]
    assert next_ones == [0, 1, 2, 3, 4, 5, 5, 5, 5, 5]
