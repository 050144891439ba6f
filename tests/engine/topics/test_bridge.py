"""Bridges: the messages of a topic become items of a queue, each once."""

import pytest

from queueber.engine.queue.peek import peek
from queueber.engine.queue.queue_state import QueueState
from queueber.engine.topics import groups
from queueber.engine.topics.bridge import move
from queueber.engine.topics.publish import publish
from queueber.errors import FailedPrecondition, NotFound, ResourceExhausted
from queueber.limits import BRIDGE_BYTES_MAX, MIB
from queueber.model import (
    GroupKind,
    ItemState,
    NewMessages,
    Position,
    Publication,
    QueueSettings,
)
from tests.support.topic_rig import TopicRig


def make_bridge(rig: TopicRig, settings: QueueSettings | None = None) -> None:
    rig.run(rig.queues.create, "q", settings or QueueSettings())
    rig.create_group(kind=GroupKind.QUEUE, queue="q")


def move_some(rig: TopicRig, messages_max: int = 100) -> int:
    group = groups.get_group(rig.topic, "g")
    return rig.run(move, rig.topics, rig.topic, group, queue(rig), messages_max)


def queue(rig: TopicRig) -> QueueState:
    return rig.queues.get("q")


def items(rig: TopicRig) -> list[tuple[str, bytes]]:
    found, _ = peek(rig.store, queue(rig), ItemState.READY, b"", 100, MIB)
    return [(each.key, each.contents) for each in found]


def cursors(rig: TopicRig) -> list[int]:
    group = groups.get_group(rig.topic, "g")
    return [groups.cursor(rig.topic, group, each) for each in range(rig.topic.partitions)]


def test_messages_become_items_with_their_place_as_key_and_their_attributes(rig: TopicRig) -> None:
    make_bridge(rig)
    messages = NewMessages([b"a", b"b"], ["x", ""], [{"traceparent": "00-1"}, {}])
    rig.run(publish, rig.topics, [(rig.topic, Publication("t", messages, 1))])
    assert move_some(rig) == 2
    found, _ = peek(rig.store, queue(rig), ItemState.READY, b"", 10, MIB)
    assert [(each.contents, each.key, each.attributes) for each in found] == [
        (b"a", "t/1/0", {"traceparent": "00-1"}),
        (b"b", "t/1/1", {}),
    ]
    assert cursors(rig) == [0, 2]
    assert move_some(rig) == 0


def test_a_bridge_goes_on_after_a_restart_and_adds_nothing_twice(rig: TopicRig) -> None:
    make_bridge(rig)
    rig.publish(b"a", b"b", b"c", partition=0)
    rig.publish(b"d", partition=1)
    assert [move_some(rig, 2)] == [2]
    rig.reopen()
    assert [move_some(rig, 2), move_some(rig, 2)] == [2, 0]
    assert sorted(items(rig)) == [
        ("t/0/0", b"a"), ("t/0/1", b"b"), ("t/0/2", b"c"), ("t/1/0", b"d"),
    ]  # fmt: skip
    group = groups.get_group(rig.topic, "g")
    rig.run(groups.reset_group, rig.topic, group, None, Position())
    assert move_some(rig) == 4
    assert len(items(rig)) == 4, "the queue knows the keys"


def test_a_queue_gets_as_many_messages_as_it_has_room_for(rig: TopicRig) -> None:
    make_bridge(rig, QueueSettings(items_max=3))
    rig.publish(*[b"x"] * 5, partition=0)
    assert move_some(rig) == 3
    before = rig.dump()
    with pytest.raises(ResourceExhausted, match="queue 'q' has 3 items and no room"):
        move_some(rig)
    assert rig.dump() == before
    assert cursors(rig) == [3, 0]


def test_a_queue_gets_as_many_bytes_as_it_has_room_for(rig: TopicRig) -> None:
    make_bridge(rig, QueueSettings(bytes_max=50))
    rig.publish(*[b"x" * 10] * 5, partition=0)
    assert [move_some(rig) for _ in range(3)] == [1, 1, 1]
    with pytest.raises(ResourceExhausted, match="no room for the next message"):
        move_some(rig)
    assert (len(items(rig)), cursors(rig)) == (3, [3, 0])


def test_a_message_that_is_larger_than_a_step_is_moved_alone(rig: TopicRig) -> None:
    make_bridge(rig)
    rig.publish(b"x" * (BRIDGE_BYTES_MAX + 1), b"y", partition=0)
    assert [move_some(rig), move_some(rig), move_some(rig)] == [1, 1, 0]


def test_a_bridge_to_a_queue_that_does_not_exist_is_refused(rig: TopicRig) -> None:
    before = rig.dump()

    with pytest.raises(NotFound, match="there is no queue 'nowhere'"):
        rig.create_group(kind=GroupKind.QUEUE, queue="nowhere")

    assert rig.dump() == before


def test_a_paused_bridge_moves_nothing(rig: TopicRig) -> None:
    make_bridge(rig)
    rig.publish(b"a", partition=0)
    group = groups.get_group(rig.topic, "g")
    rig.run(groups.pause_group, rig.topic, group, rig.now_ms + 10)
    assert move_some(rig) == 0
    assert rig.kernel.agenda.due_ms(rig.topic.queue_id) <= rig.now_ms + 10
    rig.now_ms += 10
    assert move_some(rig) == 1


def test_only_a_bridge_moves_messages(rig: TopicRig) -> None:
    rig.run(rig.queues.create, "q", QueueSettings())
    rig.create_group()
    with pytest.raises(FailedPrecondition, match="group 'g' is of kind 'ordered'"):
        move_some(rig)


def test_a_busy_partition_does_not_keep_the_others_waiting(rig: TopicRig) -> None:
    make_bridge(rig)
    rig.publish(*[b"0"] * 12, partition=0)
    rig.publish(b"1", partition=1)

    assert [move_some(rig, 4) for _ in range(2)] == [4, 4]

    assert cursors(rig) == [7, 1]
