"""Forks: messages that are shared, and parents that outlive their deletion."""

from collections.abc import Iterator

import pytest

from queueber.engine.topics.describe import topic_info
from queueber.engine.topics.forks import fork
from queueber.engine.topics.publish import publish
from queueber.engine.topics.read import find_id, find_sequence, read
from queueber.engine.topics.topic_state import TopicState
from queueber.engine.topics.trim import trim_topic
from queueber.errors import AlreadyExists, FailedPrecondition, NotFound, OutOfRange
from queueber.limits import MIB
from queueber.model import (
    Bounds,
    ForkAt,
    NewMessages,
    Position,
    Publication,
    Start,
    TopicConfig,
    TopicSettings,
)
from tests.support.dumps import dump
from tests.support.topic_rig import TOPIC, TopicRig


def make_fork(rig: TopicRig, of: str, name: str, offset: int) -> TopicState:
    parent = rig.topics.get(of, rig.now_ms)
    return rig.run(fork, rig.topics, parent, name, TopicConfig(), ForkAt(0, offset))[0]


def make_cut(rig: TopicRig, of: str, name: str, at: ForkAt, ttl_ms: int = 0) -> TopicState:
    config = TopicConfig(TopicSettings(ttl_ms=ttl_ms))
    return rig.run(fork, rig.topics, rig.topics.get(of, rig.now_ms), name, config, at)[0]


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


# --- forks that begin inside of a message ---------------------------------------------------------


@pytest.fixture
def stream() -> Iterator[TopicRig]:
    """A topic of one partition."""
    rig = TopicRig()
    yield rig
    rig.close()


def test_the_part_of_a_message_that_a_fork_begins_with_is_its_own(stream: TopicRig) -> None:
    rig = stream
    append(rig, TOPIC, b"abcd", b"efgh")
    rig.now_ms += 5
    made = make_cut(rig, TOPIC, "fork", ForkAt(0, 1, 3))
    again = make_cut(rig, "fork", "again", ForkAt(0, 1, 2))
    append(rig, "again", b"!")
    append(rig, TOPIC, b"later")

    assert contents(rig, "fork") == b"abcdefg"
    assert contents(rig, "again") == b"abcdef!"
    assert [each.first for each in made.stretches(0)] == [0, 1]
    assert [topic_info(each, rig.topics).origin for each in (made, again)] == [
        rig.topic.queue_id
    ] * 2
    assert (made.record.fork_offset, made.record.cut_bytes) == (1, 3)
    rig.reopen()
    assert contents(rig, "again") == b"abcdef!"


def test_the_part_of_a_message_has_its_key_and_attributes(rig: TopicRig) -> None:
    messages = NewMessages([b"abc"], ["k"], [{"n": "v"}])
    rig.run(publish, rig.topics, [(rig.topic, Publication(TOPIC, messages, 0))])
    made = make_cut(rig, TOPIC, "fork", ForkAt(0, 0, 1))

    (piece,) = read(rig.store, made, 0, 0, Bounds()).packed
    assert (piece.payloads, list(piece.keys), len(piece.attributes)) == (b"a", [b"k"], 1)
    assert find_id(rig.store, rig.topic, piece.id) is None, "it is another message"


@pytest.mark.parametrize(("offset", "cut_bytes"), [(0, 4), (0, 5), (1, 1), (2, 1)])
def test_a_fork_begins_with_less_than_a_message_has(
    rig: TopicRig, offset: int, cut_bytes: int
) -> None:
    append(rig, TOPIC, b"abcd", b"")
    before = dump(rig.store)

    with pytest.raises(OutOfRange):
        make_cut(rig, TOPIC, "fork", ForkAt(0, offset, cut_bytes))

    assert dump(rig.store) == before


def test_a_fork_with_another_cut_is_another_fork(rig: TopicRig) -> None:
    append(rig, TOPIC, b"abcd")
    made = make_cut(rig, TOPIC, "fork", ForkAt(0, 0, 2))

    assert make_cut(rig, TOPIC, "fork", ForkAt(0, 0, 2)) is made
    for at in (ForkAt(0, 0, 3), ForkAt(0, 0), ForkAt(0, 1)):
        with pytest.raises(AlreadyExists):
            make_cut(rig, TOPIC, "fork", at)


def test_a_fork_inside_of_a_message_of_any_partition_is_sound(rig: TopicRig) -> None:
    rig.run(publish, rig.topics, [(rig.topic, Publication(TOPIC, NewMessages([b"abc"]), 1))])

    made = make_cut(rig, TOPIC, "fork", ForkAt(1, 0, 2))

    (piece,) = read(rig.store, made, 1, 0, Bounds()).packed
    assert (piece.payloads, made.record.fork_offset, made.record.cut_bytes) == (b"ab", 0, 2)


def test_a_trimmed_fork_is_known_by_where_it_began(stream: TopicRig) -> None:
    rig = stream
    append(rig, TOPIC, b"a", b"b", b"c")
    made = make_fork(rig, TOPIC, "fork", 2)
    rig.run(trim_topic, made, 0, Position(Start.OFFSET, 2))

    assert make_fork(rig, TOPIC, "fork", 2) is made
    with pytest.raises(AlreadyExists):
        make_fork(rig, TOPIC, "fork", 1)


def test_forks_of_an_older_version_have_the_origin_of_their_ancestors(rig: TopicRig) -> None:
    append(rig, TOPIC, b"a")
    one = make_fork(rig, TOPIC, "one", 1)
    two = make_fork(rig, "one", "two", 1)
    for each in (one, two):
        rig.run(lambda tx, each=each: each.change(tx, origin=0, fork_offset=0))
    rig.reopen()

    found = [rig.topics.get(name, rig.now_ms) for name in (TOPIC, "one", "two")]
    assert {rig.topics.origin(each) for each in found} == {found[0].queue_id}
    assert make_fork(rig, "one", "two", 1) is found[2], "it is known by what it shares"


# --- forks and time -------------------------------------------------------------------------------


def test_an_expired_topic_with_forks_is_as_one_that_was_deleted(rig: TopicRig) -> None:
    append(rig, TOPIC, b"a")
    make_cut(rig, TOPIC, "source", ForkAt(0, 1), ttl_ms=1000)
    make_cut(rig, "source", "fork", ForkAt(0, 1))
    rig.now_ms += 1000

    for _ in range(2):  # before the sweep, and after it
        with pytest.raises(NotFound) as gone:
            rig.topics.get("source", rig.now_ms)
        assert gone.value.numbers == {"forks": 1}
        with pytest.raises(NotFound):
            make_cut(rig, "source", "other", ForkAt(0, 1))
        with pytest.raises(AlreadyExists) as kept:
            rig.run(rig.topics.create, "source", TopicSettings())
        assert kept.value.numbers == {"forks": 1}
        found = rig.topics.find("source")
        assert found is not None
        assert topic_info(found, rig.topics, rig.now_ms).is_deleted
        assert contents(rig, "fork") == b"a"
        rig.sweep()


def test_the_expiry_of_the_last_fork_frees_all_its_ancestors(rig: TopicRig) -> None:
    append(rig, TOPIC, b"a")
    make_fork(rig, TOPIC, "one", 1)
    make_cut(rig, "one", "two", ForkAt(0, 1), ttl_ms=1000)
    for name in (TOPIC, "one"):
        rig.run(rig.topics.delete, rig.topics.get(name, rig.now_ms))
    assert rig.topics.find(TOPIC) is not None
    rig.now_ms += 1000
    rig.sweep()

    assert [rig.topics.find(name) for name in (TOPIC, "one", "two")] == [None] * 3
    rig.run(rig.topics.create, TOPIC, TopicSettings())


def test_a_fork_takes_the_name_of_an_expired_fork(rig: TopicRig) -> None:
    append(rig, TOPIC, b"ab")
    make_cut(rig, TOPIC, "fork", ForkAt(0, 1), ttl_ms=1000)
    rig.now_ms += 1000

    make_cut(rig, TOPIC, "fork", ForkAt(0, 0, 1))

    assert contents(rig, "fork") == b"a"
    assert rig.topic.record.forks == 1
