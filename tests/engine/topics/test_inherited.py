"""Bytes that a fork shares: those of its ancestors, and not its own."""

from collections.abc import Iterator

import pytest

from queueber.engine.topics.describe import topic_info
from queueber.engine.topics.forks import fork
from queueber.engine.topics.trim import trim_topic
from queueber.errors import FailedPrecondition
from queueber.model import ForkAt, Position, Start, TopicConfig, TopicSettings
from tests.support.topic_rig import TOPIC, TopicRig


@pytest.fixture
def rig() -> Iterator[TopicRig]:
    made = TopicRig(partitions=1)
    yield made
    made.close()


def bytes_of(rig: TopicRig, name: str) -> tuple[int, int]:
    (found,) = topic_info(rig.topics.get(name, rig.now_ms), rig.topics).partitions
    return found.bytes, found.inherited_bytes


def forked(rig: TopicRig, name: str, offset: int) -> None:
    rig.run(fork, rig.topics, rig.topic, name, TopicConfig(), ForkAt(0, offset))


def test_a_fork_tells_the_bytes_that_it_shares_beside_its_own(rig: TopicRig) -> None:
    sizes = []
    for payload in (b"a" * 100, b"b" * 1000, b"c" * 10):
        rig.publish(payload)
        sizes.append(bytes_of(rig, TOPIC)[0])
    forked(rig, "fork", 2)
    rig.name = "fork"
    rig.publish(b"own")
    own, _ = bytes_of(rig, "fork")
    forked(rig, "again", 3)

    assert bytes_of(rig, TOPIC) == (sizes[2], 0)
    assert bytes_of(rig, "fork") == (own, sizes[1])
    assert bytes_of(rig, "again") == (0, sizes[1] + own)
    rig.reopen()
    assert bytes_of(rig, "again") == (0, sizes[1] + own)


def test_what_a_fork_has_trimmed_is_not_told(rig: TopicRig) -> None:
    rig.publish(b"a" * 100)
    first = bytes_of(rig, TOPIC)[0]
    rig.publish(b"b" * 1000)
    both = bytes_of(rig, TOPIC)[0]
    forked(rig, "fork", 2)
    rig.name = "fork"
    assert bytes_of(rig, "fork") == (0, both)

    rig.run(trim_topic, rig.topic, 0, Position(Start.OFFSET, 1))

    assert bytes_of(rig, "fork") == (0, both - first)


def test_messages_for_a_stream_are_for_a_topic_of_one_partition(rig: TopicRig) -> None:
    rig.run(rig.topics.create, "many", TopicSettings(), partitions=2)
    before = rig.dump()
    rig.name = "many"

    with pytest.raises(FailedPrecondition) as refused:
        rig.publish(b"x", partition=0, one_partition=True)

    assert refused.value.numbers == {"partitions": 2}
    assert rig.dump() == before
    rig.name = TOPIC
    assert list(rig.publish(b"x", one_partition=True).offsets) == [0]
