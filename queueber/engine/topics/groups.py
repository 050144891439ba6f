"""Groups: who reads a topic, and how far each is.

A group has a cursor in each partition, which is stored when the group is created: one that begins
at the latest message begins there also after a restart. A partition that is added later is read
from its first offset. The cursor of an ordered group, and of a bridge, is the offset of a reader of
the partition's log. A shared group has the messages that its consumers work on, and a position
behind them (`shared_groups.py`).
"""

from collections.abc import Iterable
from typing import Any

from queueber.db.families import GROUP_FAMILIES, Family
from queueber.db.records.log import encode_offset, reader_key
from queueber.db.records.topics import GroupRecord, encode_group
from queueber.db.store.contract import Reads
from queueber.engine.kernel.delete_all import delete_all
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.topics import shared_groups
from queueber.engine.topics.group import Group
from queueber.engine.topics.message_blocks import look_at_acknowledged
from queueber.engine.topics.read import start_of
from queueber.engine.topics.topic_state import TopicState
from queueber.engine.topics.topics import Topics
from queueber.errors import (
    AlreadyExists,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    OutOfRange,
    ResourceExhausted,
)
from queueber.limits import GROUP_NAME_BYTES_MAX, GROUPS_MAX
from queueber.model import GroupInfo, GroupKind, GroupSettings, Position

# --- creating and finding -------------------------------------------------------------------------


def create_group(
    tx: Transaction[Any],
    topics: Topics,
    topic: TopicState,
    name: str,
    settings: GroupSettings,
    position: Position,
    *,
    partition: int | None = None,
) -> tuple[Group, bool]:
    """The group, and whether it is new. One that exists must have the same settings, and stays
    where it is. A shared group may begin only one `partition`, and the others later."""
    _check(name, settings)
    new: dict[str, Group] = tx.pending.setdefault((topic, "groups"), {})
    existing = new.get(name) or topic.groups.get(name)
    if existing is not None:
        if existing.settings != settings:
            raise AlreadyExists(
                f"group {name!r} of topic {topic.name!r} exists with other settings"
            )
        return existing, False
    if len(topic.groups) + len(new) >= GROUPS_MAX:
        raise ResourceExhausted(
            f"topic {topic.name!r} has {GROUPS_MAX} groups, the limit; delete one of them"
        )
    if settings.kind is GroupKind.QUEUE:
        topics.check_bridge(topic, topics.queues.get(settings.queue))  # refused if there is none
    chosen = range(topic.partitions) if partition is None else [partition]
    offsets = {each: _start(tx, topic, each, position) for each in chosen}
    is_shared = settings.kind is GroupKind.SHARED
    began_at = tuple(offsets.values()) if any(offsets.values()) and not is_shared else ()
    record = GroupRecord(topics.take_number(tx), tx.now_ms, settings, began_at=began_at)
    group = Group(topic, name, record)
    new[name] = group
    tx.batch.put(Family.GROUPS, group.key, encode_group(group.record))
    tx.after_write(topic.groups.__setitem__, name, group)
    if is_shared:
        shared_groups.put_positions(tx, group, offsets)
    else:
        for each, offset in offsets.items():
            _put_cursor(tx, topic, group, each, offset)
    if settings.kind is GroupKind.QUEUE:
        tx.look_at(topic, tx.now_ms)
    return group, True


def _check(name: str, settings: GroupSettings) -> None:
    size = len(name.encode())
    if not 1 <= size <= GROUP_NAME_BYTES_MAX:
        raise InvalidArgument(
            f"name: a group's has {size} bytes; it must have 1 to {GROUP_NAME_BYTES_MAX}"
        )
    if (settings.kind is GroupKind.QUEUE) != bool(settings.queue):
        raise InvalidArgument(
            f"queue is {settings.queue!r} for a group of kind {settings.kind.value!r}; groups of "
            "kind 'queue' have one, and no others"
        )


def _start(tx: Transaction[Any], topic: TopicState, partition: int, position: Position) -> int:
    return start_of(tx.store, topic, partition, position)[0]


def get_group(topic: TopicState, name: str) -> Group:
    group = topic.groups.get(name)
    if group is None:
        raise NotFound(f"topic {topic.name!r} has no group {name!r}; create it, or check the name")
    return group


# --- how far a group is ---------------------------------------------------------------------------


def cursor(topic: TopicState, group: Group, partition: int) -> int:
    """Where the group goes on in a partition.

    That may be before the first message that is kept: a reader is then told what it missed.
    """
    topic.check_partition(partition)
    if group.kind is GroupKind.SHARED:
        return shared_groups.floor(group, partition)
    return topic.log(partition).readers.get(group.name, 0)


def floor(topic: TopicState, group: Group, partition: int) -> int:
    """The offset of the oldest message that the group has not acknowledged, and that is kept."""
    return max(cursor(topic, group, partition), topic.first_offset(partition))


def acknowledged(topic: TopicState, partition: int) -> int:
    """All groups are done with the messages of a partition before this offset, and the topic keeps
    none of those; 0 if it keeps them, or has no groups."""
    if not topic.settings.deletes_acknowledged:
        return 0
    return min([floor(topic, each, partition) for each in topic.groups.values()], default=0)


def acknowledge(
    tx: Transaction[Any], topic: TopicState, group: Group, partition: int, offset: int
) -> int:
    """The group is done with the messages before `offset`. Returns its cursor as it is then: it
    never goes back, so an offset that it has passed changes nothing."""
    if group.kind is not GroupKind.ORDERED:
        raise FailedPrecondition(
            f"group {group.name!r} is of kind {group.kind.value!r}; only groups of kind 'ordered' "
            "acknowledge all messages up to an offset here"
        )
    topic.check_partition(partition)
    first, end = topic.first_offset(partition), topic.next_offset(partition)
    if not 0 <= offset <= end:
        raise OutOfRange(
            f"offset is {offset}; partition {partition} of topic {topic.name!r} has messages from "
            f"{first} up to {end}",
            first=first,
            next=end,
        )
    return move_cursor(tx, topic, group, partition, offset)


def move_cursor(
    tx: Transaction[Any], topic: TopicState, group: Group, partition: int, offset: int
) -> int:
    """Move the cursor of an ordered group or a bridge on; returns where it is then."""
    known: int = tx.pending.get((group, partition), cursor(topic, group, partition))
    if offset <= known:
        return known
    _put_cursor(tx, topic, group, partition, offset)
    return offset


def _put_cursor(
    tx: Transaction[Any], topic: TopicState, group: Group, partition: int, offset: int
) -> None:
    log = topic.log(partition)
    tx.batch.put(Family.LOGS, reader_key(log.prefix, group.name), encode_offset(offset))
    tx.pending[group, partition] = offset
    tx.after_write(log.readers.__setitem__, group.name, offset)
    look_at_acknowledged(tx, topic)


# --- changing -------------------------------------------------------------------------------------


def reset_group(
    tx: Transaction[Any],
    topic: TopicState,
    group: Group,
    partition: int | None,
    position: Position,
) -> None:
    """Move the group to a position, forward or back, in one partition or in all.

    What a shared group has leased or is to retry is dropped; its dead letters stay.
    """
    if partition is not None:
        topic.check_partition(partition)
    chosen = range(topic.partitions) if partition is None else [partition]
    offsets = {each: _start(tx, topic, each, position) for each in chosen}
    if group.kind is GroupKind.SHARED:
        shared_groups.reset(tx, group, offsets)
        look_at_acknowledged(tx, topic)
        return
    for each, offset in offsets.items():
        _put_cursor(tx, topic, group, each, offset)
    if group.kind is GroupKind.QUEUE:
        tx.look_at(topic, tx.now_ms)


def pause_group(tx: Transaction[Any], topic: TopicState, group: Group, until_ms: int) -> None:
    """Give consumers nothing until that time; 0: go on."""
    if group.kind is GroupKind.SHARED:
        shared_groups.pause(tx, group, until_ms)
        return
    group.change(tx, paused_until_ms=until_ms)
    if group.kind is GroupKind.QUEUE:
        tx.look_at(topic, max(tx.now_ms, until_ms))


def delete_group(tx: Transaction[Any], topics: Topics, topic: TopicState, group: Group) -> None:
    """Delete the group. Its consumers get nothing any more."""
    tx.batch.delete(Family.GROUPS, group.key)
    if group.kind is GroupKind.SHARED:
        for family in GROUP_FAMILIES:
            delete_all(tx, family, group.prefix)
    else:
        for partition in range(topic.partitions):
            log = topic.log(partition)
            tx.batch.delete(Family.LOGS, reader_key(log.prefix, group.name))
            tx.after_write(log.readers.pop, group.name, None)
    if group.kind is GroupKind.SHARED:
        group.noted.clear(tx)
        topics.forget(tx, group)
    tx.after_write(topic.groups.pop, group.name, None)
    look_at_acknowledged(tx, topic)


def look_at_lost(tx: Transaction[Any], topic: TopicState) -> None:
    """The topic deletes messages: have shared groups that are in memory drop what they have of
    them. Others do so when they are used."""
    for group in topic.groups.values():
        if (queue := group.opened_queue) is not None:
            tx.look_at(queue, tx.now_ms)


# --- describing -----------------------------------------------------------------------------------


def group_info(reads: Reads, topic: TopicState, group: Group, now_ms: int) -> GroupInfo:
    """A group as it is now. In a topic that keeps the last message of each key the lag also counts
    messages that were replaced."""
    floors = [floor(topic, group, each) for each in range(topic.partitions)]
    ends = [topic.next_offset(each) for each in range(topic.partitions)]
    lag = sum(ends) - sum(floors)
    leased = dead = 0
    if group.kind is GroupKind.SHARED:
        counters = group.queue.counters
        leased, dead = counters.leased, counters.dead
        lag = shared_groups.lag(group)
    waiting = {each: at for each, at in enumerate(floors) if at < ends[each]}
    is_moving = group.kind is GroupKind.QUEUE and not group.is_paused(now_ms)
    return GroupInfo(
        group.name,
        group.settings,
        group.record.created_at_ms,
        group.record.paused_until_ms if group.is_paused(now_ms) else 0,
        floors,
        lag,
        now_ms - _oldest_ms(reads, topic, waiting.items(), now_ms),
        leased,
        dead,
        stopped_by=group.bridge.stopped_by(waiting) if is_moving else "",
        is_untouched=group.kind is GroupKind.ORDERED and is_untouched(topic, group),
    )


def is_untouched(topic: TopicState, group: Group) -> bool:
    """Whether an ordered group has acknowledged nothing: its cursors are where they began, which
    may be behind messages that were deleted before. A partition that was added begins at 0."""
    began_at = group.record.began_at
    return all(
        cursor(topic, group, each) == (began_at[each] if each < len(began_at) else 0)
        for each in range(topic.partitions)
    )


def _oldest_ms(
    reads: Reads, topic: TopicState, places: Iterable[tuple[int, int]], now_ms: int
) -> int:
    """When the oldest of some messages was published; `now_ms` if there are none."""
    found = [topic.block_from(reads, partition, offset) for partition, offset in places]
    return min([*[block.appended_at_ms for block in found if block is not None], now_ms])
