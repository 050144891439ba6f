"""Changes of topics: what a refused one leaves as it was, and names that must stay apart."""

import pytest

from queueber.engine.kernel.transaction import Transaction
from queueber.errors import InvalidArgument, QueueberError, ResourceExhausted
from queueber.model import TopicSettings
from tests.support.topic_rig import TOPIC, TopicRig


def test_a_change_that_is_not_written_does_not_count_as_use(rig: TopicRig) -> None:
    rig.run(rig.topics.configure, rig.topic, TopicSettings(ttl_ms=1000))
    topic = rig.topic
    before = topic.record, topic.expires_at_ms

    later = Transaction(rig.kernel, rig.now_ms + 500, None)
    rig.topics.configure(later, topic, TopicSettings(ttl_ms=5000))

    assert (topic.record, topic.expires_at_ms) == before


def test_the_alias_of_a_topic_is_not_its_name(rig: TopicRig) -> None:
    before = rig.dump()

    with pytest.raises(InvalidArgument, match="alias is 'other', which is the name"):
        rig.run(rig.topics.create, "other", TopicSettings(), alias="other")
    with pytest.raises(InvalidArgument, match=f"alias is '{TOPIC}', which is the name"):
        rig.run(rig.topics.configure, rig.topic, TopicSettings(), alias=TOPIC)

    assert rig.dump() == before


def test_nothing_is_read_of_a_topic_that_is_new(
    rig: TopicRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise QueueberError("the store was read")

    monkeypatch.setattr("queueber.engine.topics.topic_state.open_log", refuse)
    monkeypatch.setattr("queueber.engine.topics.topic_state.read_groups", refuse)

    rig.run(rig.topics.create, "new", TopicSettings(), partitions=3)
    rig.name = "new"
    published = rig.publish(b"a", partition=2)

    assert list(published.offsets) == [0]
    assert rig.topic.groups == {}


def test_topics_are_refused_when_all_numbers_are_given_away(rig: TopicRig) -> None:
    rig.kernel.numbers.next = (1 << 32) - 2
    before = rig.dump()

    with pytest.raises(ResourceExhausted, match="4294967293 of 4294967294 numbers"):
        rig.run(rig.topics.create, "new", TopicSettings(), partitions=2)

    assert rig.dump() == before
