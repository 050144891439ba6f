"""Topics, groups and calls that do many things survive the wire, in both directions."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queueber.errors import InvalidArgument
from queueber.model import (
    Added,
    FailOutcome,
    GroupAck,
    GroupInfo,
    GroupKind,
    GroupSettings,
    NewItems,
    PartitionInfo,
    Position,
    QueueSettings,
    QueueSteps,
    Start,
    Together,
    TogetherDone,
    TopicConfig,
    TopicInfo,
    TopicSettings,
)
from queueber.schema import wire
from queueber.wire.together import (
    read_together,
    read_together_done,
    write_together,
    write_together_done,
)
from queueber.wire.topics import (
    read_config,
    read_group_info,
    read_partition,
    read_position,
    read_topic_info,
    write_config,
    write_group_info,
    write_position,
    write_topic_info,
)
from tests.wire.test_messages import ids, publications, published, sent, texts, u32, u64

settings = st.builds(
    TopicSettings,
    u64, u64, u64, st.booleans(), st.booleans(), st.booleans(), u64, u64, u64, u64,
)  # fmt: skip
configs = st.builds(TopicConfig, settings, u32, texts, texts)
partitions = st.builds(PartitionInfo, u64, u64, u64, u64, u64, u64)
topics = st.builds(
    TopicInfo,
    texts, configs, u64, st.lists(partitions, max_size=3), st.booleans(), st.booleans(), u32, texts,
    st.lists(texts, max_size=3), u64,
)  # fmt: skip
group_settings = st.builds(
    GroupSettings,
    st.sampled_from(GroupKind),
    texts,
    st.builds(QueueSettings, lease_ms=u64, attempts_max=u32, isolation=st.booleans()),
    u64,
)
group_infos = st.builds(
    GroupInfo,
    texts, group_settings, u64, u64, st.lists(u64, max_size=3), u64, u64, u64, u64,
    st.lists(texts, max_size=3), texts, st.booleans(),
)  # fmt: skip


@given(configs)
def test_configurations(config: TopicConfig) -> None:
    for received in sent(wire.TopicConfig, write_config, config):
        assert read_config(received) == config


@given(topics)
def test_topics(info: TopicInfo) -> None:
    for received in sent(wire.TopicInfo, write_topic_info, info):
        assert read_topic_info(received) == info


@given(group_infos)
def test_groups(info: GroupInfo) -> None:
    for received in sent(wire.GroupInfo, write_group_info, info):
        assert read_group_info(received) == info


@given(st.builds(Position, st.sampled_from(Start), u64, st.booleans()))
def test_positions(position: Position) -> None:
    for received in sent(wire.Position, write_position, position):
        assert read_position(received) == position


def test_numbers_that_mean_nothing_are_refused() -> None:
    message = wire.Position.new_message()
    message.start = 99
    with pytest.raises(InvalidArgument, match="start: 99 is no position; the highest is 5"):
        read_position(message.as_reader())
    with pytest.raises(InvalidArgument, match="partition: -2 is negative"):
        read_partition(-2)
    assert (read_partition(-1), read_partition(0)) == (None, 0)


acks = st.builds(
    GroupAck,
    texts,
    texts,
    u32,
    u64,
    st.binary(max_size=16),
    st.lists(u64, max_size=3),
    st.none() | st.integers(0, 2**63 - 1),
)
steps = st.builds(
    QueueSteps,
    texts,
    st.none() | st.builds(NewItems, st.lists(st.binary(max_size=5), min_size=1, max_size=3)),
    st.lists(ids, min_size=1, max_size=3),
    st.lists(ids, max_size=3),
    st.lists(st.binary(max_size=5), max_size=3),
    st.lists(ids, min_size=1, max_size=3),
    st.lists(ids, max_size=3),
    st.lists(texts, max_size=3),
    st.lists(st.integers(-1, 2**62), max_size=3),
)


@given(st.lists(publications, max_size=2), st.lists(acks, max_size=2), st.lists(steps, max_size=2))
def test_together(publications: Any, acks: Any, steps: Any) -> None:
    asked = Together(publications, acks, steps)
    for received in sent(wire.Together, write_together, asked):
        read = read_together(received)
        assert [each.topic for each in read.publications] == [each.topic for each in publications]
        assert read.acks == acks
        for got, wanted in zip(read.queues, steps, strict=True):
            if wanted.add is not None:
                assert got.add is not None
                assert list(got.add.contents) == list(wanted.add.contents)
                got.add = wanted.add
            assert got == wanted


@given(
    st.lists(published, max_size=2),
    st.lists(st.lists(ids, max_size=3), max_size=2),
    st.lists(st.lists(st.sampled_from(FailOutcome), max_size=3), max_size=2),
)
def test_answers_of_calls_that_do_many_things(published: Any, added: Any, failed: Any) -> None:
    done = TogetherDone(published, [Added(each) for each in added], failed)
    for received in sent(wire.TogetherDone, write_together_done, done):
        read = read_together_done(received)
        assert [list(each.offsets) for each in read.published] == [
            list(each.offsets) for each in published
        ]
        assert [list(each.ids) if each else [] for each in read.added] == added
        assert read.failed == failed
