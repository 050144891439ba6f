"""Bridges: the messages of a topic become items of a queue, each once."""

import pytest

from queueber.engine.queue.peek import peek
from queueber.engine.queue.queue_state import QueueState
from queueber.engine.queue.queues import configure
from queueber.engine.topics import groups
from queueber.engine.topics.bridge import move
from queueber.engine.topics.group import Stop
from queueber.engine.topics.publish import publish
from queueber.engine.topics.sweep import sweep
from queueber.errors import FailedPrecondition, NotFound, ResourceExhausted
from queueber.limits import BRIDGE_BYTES_MAX, BRIDGE_RETRY_MS, MIB
from queueber.model import (
    GroupKind,
    ItemState,
    NewMessages,
    Position,
    Publication,
    QueueSettings,
    Start,
    TopicSettings,
)
from tests.support.topic_rig import TopicRig


def make_bridge(rig: TopicRig, settings: QueueSettings | None = None) -> None:
    rig.run(rig.queues.create, "q", settings or QueueSettings())
    rig.create_group(kind=GroupKind.QUEUE, queue="q")


def move_some(rig: TopicRig, messages_max: int = 100) -> int:
    group = groups.get_group(rig.topic, "g")
    return rig.run(move, rig.topic, group, queue(rig), messages_max)


def queue(rig: TopicRig) -> QueueState:
    return rig.queues.get("q")


def items(rig: TopicRig) -> list[tuple[str, bytes]]:
    found, _ = peek(rig.store, queue(rig), ItemState.READY, b"", 100, MIB)
    return [(each.key, each.contents) for each in found]


def cursors(rig: TopicRig) -> list[int]:
    group = groups.get_group(rig.topic, "g")
    return [groups.cursor(rig.topic, group, each) for each in range(rig.topic.partitions)]


def key(partition: int, offset: int, topic: int = 1) -> str:
    """`topic` is the number of the topic, of which the one of the rig is the first."""
    return f"t/{partition}/{offset}#{topic}"


def test_messages_become_items_with_their_place_as_key_and_their_attributes(rig: TopicRig) -> None:
    make_bridge(rig)
    messages = NewMessages([b"a", b"b"], ["x", ""], [{"traceparent": "00-1"}, {}])
    rig.run(publish, rig.topics, [(rig.topic, Publication("t", messages, 1))])
    assert move_some(rig) == 2
    found, _ = peek(rig.store, queue(rig), ItemState.READY, b"", 10, MIB)
    assert [(each.contents, each.key, each.attributes) for each in found] == [
        (b"a", key(1, 0), {"traceparent": "00-1"}),
        (b"b", key(1, 1), {}),
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
        (key(0, 0), b"a"), (key(0, 1), b"b"), (key(0, 2), b"c"), (key(1, 0), b"d"),
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
    make_bridge(rig, QueueSettings(bytes_max=60))
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


def publish_and_sweep(rig: TopicRig, *payloads: bytes, partition: int = 0) -> None:
    rig.publish(*payloads, partition=partition)
    rig.sweep()


def stopped_by(rig: TopicRig) -> str:
    group = groups.get_group(rig.topic, "g")
    return groups.group_info(rig.store, rig.topic, group, rig.now_ms).stopped_by


def test_messages_of_a_topic_that_is_created_again_are_not_taken_for_those_before(
    rig: TopicRig,
) -> None:
    make_bridge(rig)
    first = rig.topic
    publish_and_sweep(rig, b"old")
    rig.run(rig.topics.delete, first)
    rig.run(rig.topics.create, "t", TopicSettings())
    rig.create_group(kind=GroupKind.QUEUE, queue="q")

    publish_and_sweep(rig, b"new")

    numbers = (first.queue_id, rig.topic.queue_id)
    assert items(rig) == [(key(0, 0, numbers[0]), b"old"), (key(0, 0, numbers[1]), b"new")]


def test_a_message_that_is_too_large_stops_its_partition_and_no_other(rig: TopicRig) -> None:
    make_bridge(rig, QueueSettings(item_bytes_max=3))
    publish_and_sweep(rig, b"a", b"long", b"b")
    publish_and_sweep(rig, b"c", b"d", partition=1)

    assert sorted(items(rig)) == [(key(0, 0), b"a"), (key(1, 0), b"c"), (key(1, 1), b"d")]
    assert cursors(rig) == [1, 2]
    assert stopped_by(rig) == (
        "message 1 of partition 0 of topic 't' has 4 bytes; item_bytes_max of queue 'q' is 3"
    )
    due_ms = rig.kernel.agenda.due_ms(rig.topic.queue_id)
    assert due_ms == rig.now_ms + BRIDGE_RETRY_MS, "a bridge that waits is not busy"


def test_a_stopped_bridge_goes_on_when_the_queue_takes_larger_items(rig: TopicRig) -> None:
    make_bridge(rig, QueueSettings(item_bytes_max=3))
    publish_and_sweep(rig, b"a", b"long", b"b")
    rig.run_on(queue(rig), configure, QueueSettings(item_bytes_max=4))

    rig.now_ms += BRIDGE_RETRY_MS
    rig.sweep()

    assert [contents for _, contents in items(rig)] == [b"a", b"long", b"b"]
    assert stopped_by(rig) == ""


def test_a_stopped_bridge_goes_on_at_once_when_its_cursor_is_moved(rig: TopicRig) -> None:
    make_bridge(rig, QueueSettings(item_bytes_max=3))
    publish_and_sweep(rig, b"a", b"long", b"b")
    group = groups.get_group(rig.topic, "g")
    rig.run(groups.reset_group, rig.topic, group, 0, Position(Start.OFFSET, 2))

    assert stopped_by(rig) == ""
    rig.sweep()

    assert [contents for _, contents in items(rig)] == [b"a", b"b"]
    assert stopped_by(rig) == ""


def test_operators_hear_of_a_stop_once_and_again_of_the_next_one(rig: TopicRig) -> None:
    make_bridge(rig, QueueSettings(item_bytes_max=3))
    rig.publish(b"long", b"longer", partition=1)
    told = sweep_stops(rig)
    for _ in range(2):
        rig.now_ms += BRIDGE_RETRY_MS
        told += sweep_stops(rig)
    group = groups.get_group(rig.topic, "g")
    rig.run(groups.reset_group, rig.topic, group, 1, Position(Start.OFFSET, 1))
    told += sweep_stops(rig)

    assert [(stop.partition, stop.offset) for stop in told] == [(1, 0), (1, 1)]


def test_operators_hear_that_a_queue_is_gone_but_not_that_it_is_full(rig: TopicRig) -> None:
    make_bridge(rig, QueueSettings(items_max=1))
    rig.publish(b"a", b"b", partition=0)
    assert sweep_stops(rig) == []
    assert stopped_by(rig).startswith("queue 'q' has 1 items and no room for the next message")

    rig.run(rig.queues.delete, "q")
    told = []
    for _ in range(2):
        rig.now_ms += BRIDGE_RETRY_MS
        told += sweep_stops(rig)

    assert [(stop.partition, stop.offset) for stop in told] == [(None, None)]
    assert told[0].reason == stopped_by(rig)
    assert told[0].reason.startswith("there is no queue 'q'")


def sweep_stops(rig: TopicRig) -> list[Stop]:
    """Do all that is due; what has stopped bridges meanwhile."""
    found: list[Stop] = []
    while (swept := sweep(rig.kernel, rig.queues, rig.topics, rig.now_ms)) is not None:
        found += [stop for _, stop in swept.stops]
    return found


def test_many_stopped_partitions_are_told_as_the_first_and_a_number() -> None:
    rig = TopicRig(partitions=3)
    try:
        make_bridge(rig, QueueSettings(item_bytes_max=3))
        for partition in range(3):
            publish_and_sweep(rig, b"long", partition=partition)

        assert stopped_by(rig).endswith(" is 3, and 2 more partitions are stopped")
        group = groups.get_group(rig.topic, "g")
        rig.run(groups.pause_group, rig.topic, group, rig.now_ms + 10)
        assert stopped_by(rig) == "", "it is paused"
    finally:
        rig.close()
