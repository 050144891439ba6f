"""Ordered groups: cursors that only go forward, unless somebody resets them."""

import pytest

from queueber.engine.topics import groups
from queueber.engine.topics.group import Group
from queueber.engine.topics.trim import trim_topic
from queueber.errors import (
    AlreadyExists,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    OutOfRange,
    ResourceExhausted,
)
from queueber.limits import GROUPS_MAX
from queueber.model import (
    GroupInfo,
    GroupKind,
    GroupSettings,
    Position,
    QueueSettings,
    Start,
    TopicSettings,
)
from tests.support.topic_rig import START_MS, TopicRig

LATEST = Position(Start.LATEST)


def cursors(rig: TopicRig, name: str = "g") -> list[int]:
    group = groups.get_group(rig.topic, name)
    return [groups.cursor(rig.topic, group, each) for each in range(rig.topic.partitions)]


def test_a_new_group_begins_at_its_position_in_each_partition_also_after_a_restart(
    rig: TopicRig,
) -> None:
    rig.publish(b"a", b"b", partition=0)
    rig.publish(b"c", partition=1)
    rig.create_group("late", position=LATEST)
    rig.create_group("early")
    rig.publish(b"d", partition=0)
    rig.reopen()
    assert cursors(rig, "late") == [2, 1]
    assert cursors(rig, "early") == [0, 0]
    assert list(rig.topic.groups) == ["early", "late"]


def test_creating_a_group_again_changes_nothing_and_other_settings_are_refused(
    rig: TopicRig,
) -> None:
    rig.publish(b"a", partition=0)
    group = rig.create_group()
    settings = GroupSettings()
    made = rig.run(groups.create_group, rig.topics, rig.topic, "g", settings, LATEST)
    assert made == (group, False)
    assert cursors(rig) == [0, 0]
    with pytest.raises(AlreadyExists, match="group 'g' of topic 't' exists with other settings"):
        rig.create_group(kind=GroupKind.SHARED)


@pytest.mark.parametrize("name", ["", "é" * 128])
def test_a_name_that_is_empty_or_too_long_is_refused(rig: TopicRig, name: str) -> None:
    before = rig.dump()
    with pytest.raises(InvalidArgument, match=r"it must have 1 to 255"):
        rig.create_group(name)
    assert rig.dump() == before


def test_only_a_bridge_names_a_queue(rig: TopicRig) -> None:
    with pytest.raises(InvalidArgument, match="queue is 'q' for a group of kind 'ordered'"):
        rig.create_group(queue="q")
    with pytest.raises(InvalidArgument, match="queue is '' for a group of kind 'queue'"):
        rig.create_group(kind=GroupKind.QUEUE)


def test_a_topic_has_so_many_groups_and_no_more(rig: TopicRig) -> None:
    for number in range(GROUPS_MAX):
        rig.create_group(f"g{number}")
    with pytest.raises(ResourceExhausted, match="topic 't' has 100 groups, the limit"):
        rig.create_group("one more")
    rig.create_group("g7")
    rig.reopen()
    assert len(rig.topic.groups) == GROUPS_MAX


def test_acknowledging_moves_the_cursor_on_and_never_back(rig: TopicRig) -> None:
    rig.publish(b"a", b"b", b"c", partition=1)
    group = rig.create_group()
    assert rig.run(groups.acknowledge, rig.topic, group, 1, 2) == 2
    assert rig.run(groups.acknowledge, rig.topic, group, 1, 1) == 2
    assert cursors(rig) == [0, 2]
    rig.reopen()
    assert cursors(rig) == [0, 2]


def test_the_highest_of_several_acknowledgements_in_one_transaction_counts(rig: TopicRig) -> None:
    rig.publish(b"a", b"b", b"c", partition=0)
    group = rig.create_group()

    def acknowledge_twice(tx: object) -> list[int]:
        return [groups.acknowledge(tx, rig.topic, group, 0, each) for each in (3, 1)]  # type: ignore[arg-type]

    assert rig.run(acknowledge_twice) == [3, 3]
    rig.reopen()
    assert cursors(rig) == [3, 0]


def test_acknowledging_past_the_end_is_refused_and_names_both_ends(rig: TopicRig) -> None:
    rig.publish(b"a", b"b", partition=0)
    group = rig.create_group()
    before = rig.dump()
    with pytest.raises(OutOfRange, match="offset is 3; partition 0 of topic 't'") as caught:
        rig.run(groups.acknowledge, rig.topic, group, 0, 3)
    assert caught.value.numbers == {"first": 0, "next": 2}
    with pytest.raises(InvalidArgument, match="partition is 2"):
        rig.run(groups.acknowledge, rig.topic, group, 2, 0)
    assert rig.dump() == before


def test_only_ordered_groups_acknowledge_up_to_an_offset(rig: TopicRig) -> None:
    rig.run(rig.queues.create, "q", QueueSettings())
    group = rig.create_group(kind=GroupKind.QUEUE, queue="q")
    with pytest.raises(FailedPrecondition, match="group 'g' is of kind 'queue'"):
        rig.run(groups.acknowledge, rig.topic, group, 0, 0)


def test_a_partition_that_is_added_later_is_read_from_its_first_offset(rig: TopicRig) -> None:
    rig.publish(b"a", partition=0)
    rig.create_group(position=LATEST)
    rig.run(rig.topics.configure, rig.topic, rig.topic.settings, partitions=3)
    rig.publish(b"b", partition=2)
    assert cursors(rig) == [1, 0, 0]


def test_a_reset_moves_one_partition_or_all_forward_and_back(rig: TopicRig) -> None:
    rig.publish(b"a", b"b", partition=0)
    rig.publish(b"c", partition=1)
    group = rig.create_group()
    rig.run(groups.reset_group, rig.topic, group, None, LATEST)
    assert cursors(rig) == [2, 1]
    rig.run(groups.reset_group, rig.topic, group, 0, Position(Start.OFFSET, 1))
    assert cursors(rig) == [1, 1]
    with pytest.raises(OutOfRange, match="offset is 2; partition 1"):
        rig.run(groups.reset_group, rig.topic, group, None, Position(Start.OFFSET, 2))
    rig.reopen()
    assert cursors(rig) == [1, 1]


def test_a_deleted_group_leaves_nothing(rig: TopicRig) -> None:
    rig.publish(b"a", partition=0)
    rig.create_group("other")
    before = rig.dump()
    rig.run(groups.delete_group, rig.topics, rig.topic, rig.create_group())
    with pytest.raises(NotFound, match="topic 't' has no group 'g'"):
        groups.get_group(rig.topic, "g")
    after = rig.dump()
    # The numbers of the group and the time of the change are not given back.
    assert {**after, "default": []} == {**before, "default": []}
    assert list(rig.topic.groups) == ["other"]


def test_the_description_tells_the_lag_in_messages_and_in_age(rig: TopicRig) -> None:
    rig.publish(b"a", b"b", partition=0)
    rig.now_ms += 5000
    rig.publish(b"c", partition=1)
    group = rig.create_group()
    rig.run(groups.acknowledge, rig.topic, group, 0, 1)
    rig.run(groups.pause_group, rig.topic, group, rig.now_ms + 10)
    rig.now_ms += 2
    info = groups.group_info(rig.store, rig.topic, group, rig.now_ms)
    assert info == GroupInfo(
        "g", GroupSettings(), START_MS + 5000, START_MS + 5010, [1, 0], 2, 5002, 0, 0
    )
    rig.run(groups.acknowledge, rig.topic, group, 0, 2)
    rig.run(groups.acknowledge, rig.topic, group, 1, 1)
    rig.now_ms += 10
    info = groups.group_info(rig.store, rig.topic, group, rig.now_ms)
    assert (info.cursors, info.lag, info.lag_ms, info.paused_until_ms) == ([2, 1], 0, 0, 0)


def test_a_group_is_untouched_until_it_acknowledges_also_behind_deleted_messages(
    rig: TopicRig,
) -> None:
    def is_untouched(group: Group) -> bool:
        return groups.group_info(rig.store, rig.topic, group, rig.now_ms).is_untouched

    rig.publish(b"a", b"b", b"c", partition=0)
    early = rig.create_group("early")
    rig.run(trim_topic, rig.topic, 0, Position(Start.OFFSET, 2))
    late = rig.create_group("late")
    assert cursors(rig, "late") == [2, 0]
    assert [is_untouched(each) for each in (early, late)] == [True, True]

    rig.run(groups.acknowledge, rig.topic, early, 0, 2)  # of those that were deleted
    rig.run(groups.acknowledge, rig.topic, late, 0, 3)
    assert [is_untouched(each) for each in (early, late)] == [False, False]
    rig.reopen()
    found = [groups.get_group(rig.topic, name) for name in ("early", "late")]
    assert [is_untouched(each) for each in found] == [False, False]
    rig.run(groups.reset_group, rig.topic, found[1], None, Position(Start.EARLIEST))
    assert is_untouched(found[1])


def test_what_all_groups_acknowledged_is_known_if_the_topic_deletes_it() -> None:
    rig = TopicRig(TopicSettings(deletes_acknowledged=True))
    rig.publish(b"a", b"b", b"c")
    assert groups.acknowledged(rig.topic, 0) == 0
    first, second = rig.create_group("first"), rig.create_group("second")
    rig.run(groups.acknowledge, rig.topic, first, 0, 3)
    assert groups.acknowledged(rig.topic, 0) == 0
    rig.run(groups.acknowledge, rig.topic, second, 0, 2)
    assert groups.acknowledged(rig.topic, 0) == 2
    assert rig.kernel.agenda.due_ms(rig.topic.queue_id) <= rig.now_ms + 1000
    rig.close()
