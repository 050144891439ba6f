"""Read: where a read begins and ends."""

import pytest

from queueber.engine.topics.read import find_id, find_sequence, offset_at, read, start_of
from queueber.engine.topics.trim import trim_topic
from queueber.errors import InvalidArgument, OutOfRange
from queueber.limits import MIB
from queueber.model import Bounds, Position, Start
from tests.support.topic_rig import START_MS, TopicRig


def fill(rig: TopicRig) -> None:
    """Offsets 0 to 9 of partition 0, one each second, of which 0 to 2 are deleted."""
    for number in range(10):
        rig.publish(b"%d" % number, partition=0)
        rig.now_ms += 1000
    rig.run(trim_topic, rig.topic, 0, Position(Start.OFFSET, 3))


@pytest.mark.parametrize(
    ("position", "offset", "missed"),
    [
        (Position(Start.EARLIEST), 3, 0),
        (Position(Start.LATEST), 10, 0),
        (Position(Start.LAST, 2), 8, 0),
        (Position(Start.LAST, 100), 3, 0),
        (Position(Start.TIME, START_MS + 4500), 5, 0),
        (Position(Start.TIME, START_MS + 5000), 5, 0),
        (Position(Start.TIME, 0), 3, 0),
        (Position(Start.TIME, START_MS + 60_000), 10, 0),
        (Position(Start.OFFSET, 3), 3, 0),
        (Position(Start.OFFSET, 10), 10, 0),
        (Position(Start.OFFSET, 1, moves=True), 3, 2),
        (Position(Start.OFFSET, 11, moves=True), 10, 0),
    ],
)
def test_a_position_is_an_offset(
    rig: TopicRig, position: Position, offset: int, missed: int
) -> None:
    fill(rig)

    assert start_of(rig.store, rig.topic, 0, position) == (offset, missed)


@pytest.mark.parametrize("offset", [0, 2, 11, 1 << 40])
def test_an_offset_that_is_not_kept_is_refused_with_both_ends(rig: TopicRig, offset: int) -> None:
    fill(rig)

    with pytest.raises(OutOfRange, match=f"offset is {offset}; .* from 3 up to 10") as caught:
        start_of(rig.store, rig.topic, 0, Position(Start.OFFSET, offset))

    assert caught.value.numbers == {"first": 3, "next": 10}


def test_a_position_of_a_group_needs_the_group(rig: TopicRig) -> None:
    with pytest.raises(InvalidArgument, match="only a group knows"):
        start_of(rig.store, rig.topic, 0, Position(Start.GROUP))


@pytest.mark.parametrize(
    ("bounds", "offsets"),
    [
        (Bounds(), [4, 5, 6, 7, 8, 9]),
        (Bounds(2), [4, 5]),
        (Bounds(end_offset=6), [4, 5]),
        (Bounds(100, MIB), [4, 5, 6, 7, 8, 9]),
        (Bounds(2, MIB), [4, 5]),
        (Bounds(100, MIB, end_offset=6), [4, 5]),
        (Bounds(100, MIB, end_offset=1000), [4, 5, 6, 7, 8, 9]),
        (Bounds(100, MIB, end_ms=START_MS + 6000), [4, 5]),
        (Bounds(100, 140), [4, 5]),
        (Bounds(100, 1), [4]),
    ],
)
def test_a_read_ends_at_its_first_bound(rig: TopicRig, bounds: Bounds, offsets: list[int]) -> None:
    fill(rig)

    found = read(rig.store, rig.topic, 0, 4, bounds)

    assert [each.offset + n for each in found.packed for n in range(each.count)] == offsets
    assert found.next_offset == offsets[-1] + 1
    assert (found.first_kept, found.end_offset, found.is_closed) == (3, 10, False)


def test_a_read_at_the_end_finds_nothing_and_tells_when_the_topic_is_closed(rig: TopicRig) -> None:
    fill(rig)
    rig.run(rig.topics.close, rig.topic)

    found = read(rig.store, rig.topic, 0, 10, Bounds(10, MIB))

    assert (found.packed, found.next_offset, found.is_closed) == ([], 10, True)


def test_messages_are_found_by_id_and_by_sequence(rig: TopicRig) -> None:
    first = rig.publish(b"a", b"b", b"c", partition=0)
    second = rig.publish(b"d", b"e", partition=1)
    third = rig.publish(b"f", partition=0)
    topic = rig.topic

    assert find_id(rig.store, topic, first.ids[1]) == (0, 1)
    assert find_id(rig.store, topic, second.ids[1]) == (1, 1)
    assert find_id(rig.store, topic, third.ids[0]) == (0, 3)
    unknown = [bytes(16), b"\xff" * 16, first.ids[0][:15] + b"\0"]
    assert [find_id(rig.store, topic, each) for each in unknown] == [None] * 3
    sequences = [*range(8)]
    assert [find_sequence(rig.store, topic, 0, each) for each in sequences] == [
        0, 0, 1, 2, 3, 3, 3, 4,
    ]  # fmt: skip


def test_a_message_that_is_deleted_is_not_found_any_more(rig: TopicRig) -> None:
    published = rig.publish(b"a", b"b", partition=0)
    rig.run(trim_topic, rig.topic, 0, Position(Start.OFFSET, 1))

    assert [find_id(rig.store, rig.topic, each) for each in published.ids] == [None, (0, 1)]
    assert offset_at(rig.store, rig.topic, 0, START_MS) == 1
