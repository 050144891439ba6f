"""Blocks of messages as a group reads them, also when the topic has deleted some."""

from queueber.db.records.blocks import Block, encode_block
from queueber.db.records.cutting import cut, part
from queueber.engine.topics.message_blocks import MessageReader, runs_from, stretches
from queueber.engine.topics.trim import trim_topic
from queueber.ids import reference
from queueber.model import Position, Start
from tests.support.topic_rig import TopicRig


def test_runs_of_new_messages_begin_at_an_offset_and_follow_the_blocks(rig: TopicRig) -> None:
    rig.publish(b"a", b"bb", b"ccc", partition=1)
    rig.publish(b"d", partition=1)
    runs = list(runs_from(rig.store, rig.topic, 1, 1, MessageReader(rig.store, rig.topic)))
    assert [(run.last, run.count, run.at, run.span, run.size, run.block) for run in runs] == [
        (reference(1, 2), 2, 1, 3, 5, reference(1, 2)),
        (reference(1, 3), 1, 0, 1, 1, reference(1, 3)),
    ]


def test_sizes_of_messages_that_are_gone_add_up_to_that_of_their_run(rig: TopicRig) -> None:
    rig.publish(b"a", b"bb", b"cccc", partition=0)
    rig.publish(b"d", partition=0)
    blocks = MessageReader(rig.store, rig.topic)
    run = next(runs_from(rig.store, rig.topic, 0, 0, blocks))
    assert [part.size for part in cut(run, 1, blocks.sizes(run))] == [1, 6]
    rig.run(trim_topic, rig.topic, 0, Position(Start.OFFSET, 3))
    blocks = MessageReader(rig.store, rig.topic)
    assert (list(blocks.kept(run)), blocks.has(run, reference(0, 1))) == ([], False)
    assert [part(run, at, at + 1, blocks.sizes(run)).size for at in range(3)] == [2, 2, 3]
    assert blocks[run].details(0, 3) == ([b""] * 3, [b""] * 3)


def test_a_trim_inside_a_block_leaves_the_messages_behind_it(rig: TopicRig) -> None:
    rig.publish(b"a", b"b", b"c", partition=0)
    run = next(runs_from(rig.store, rig.topic, 0, 0, MessageReader(rig.store, rig.topic)))
    rig.run(trim_topic, rig.topic, 0, Position(Start.OFFSET, 2))
    blocks = MessageReader(rig.store, rig.topic)
    assert list(blocks.kept(run)) == [(2, 3)]
    assert [blocks.has(run, reference(0, at)) for at in range(3)] == [False, False, True]


def test_a_block_that_lost_messages_is_read_in_stretches() -> None:
    whole = Block(encode_block([b"a", b"b", b"c", b"d", b"e"]))
    assert list(stretches(whole, 1, 4)) == [(1, 4)]
    left = Block(whole.rewritten([0, 1, 3, 4]))
    assert list(stretches(left, 0, 5)) == [(0, 2), (3, 5)]
    assert list(stretches(left, 1, 4)) == [(1, 2), (3, 4)]
    assert list(stretches(left, 2, 3)) == []
