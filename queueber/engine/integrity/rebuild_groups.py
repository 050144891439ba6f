"""Rebuild the groups of a topic: cursors and where groups began are clipped, and a broken shared
group begins again.

A group that shares messages goes back to the first one that it had not acknowledged. So consumers
may get messages again that were acknowledged behind that one, but none is left out.
"""

from collections import Counter
from collections.abc import Sequence

from queueber.db.families import GROUP_FAMILIES, Family
from queueber.db.records.keys import PREFIX_BYTES, prefix_end, queue_prefix
from queueber.db.records.log import LogHead, decode_offset, encode_offset
from queueber.db.records.queues import Counters, encode_counters
from queueber.db.records.topics import (
    GroupRecord,
    TopicRecord,
    decode_group,
    encode_group,
    position_key,
)
from queueber.db.store.contract import Store
from queueber.engine.integrity.check_groups import GroupsCheck
from queueber.engine.integrity.queue_entries import QueueEntries, readable
from queueber.engine.integrity.states import STATES, read_states
from queueber.ids import split_reference
from queueber.model import GroupKind


def rebuild_groups(
    store: Store, number: int, record: TopicRecord, heads: Sequence[LogHead], lost: Counter[str]
) -> None:
    """All records of the groups can be read, and their numbers are their own."""
    prefix = queue_prefix(number)
    groups = {
        key[PREFIX_BYTES:]: decode_group(value)
        for key, value in store.walk(Family.GROUPS, prefix, prefix_end(prefix))
    }
    _cut_beginnings(store, prefix, groups, len(heads), lost)
    for partition, head in enumerate(heads):
        _clip_cursors(store, queue_prefix(record.logs[partition]), groups, head, lost)
    check = GroupsCheck(store, "", number, record, heads)
    for name, group in groups.items():
        is_shared = group.settings.kind is GroupKind.SHARED
        if is_shared and _is_broken(check, name, group):
            _begin_again(store, group, heads, lost)


def _cut_beginnings(
    store: Store,
    topic_prefix: bytes,
    groups: dict[bytes, GroupRecord],
    partitions: int,
    lost: Counter[str],
) -> None:
    """Forget where groups began in partitions that the topic has no more."""
    batch = store.batch()
    for name, group in groups.items():
        if len(group.began_at) > partitions:
            groups[name] = group._replace(began_at=group.began_at[:partitions])
            batch.put(Family.GROUPS, topic_prefix + name, encode_group(groups[name]))
            lost["beginnings of groups in partitions that are gone"] += 1
    store.write(batch)


def _clip_cursors(
    store: Store,
    log: bytes,
    groups: dict[bytes, GroupRecord],
    head: LogHead,
    lost: Counter[str],
) -> None:
    batch = store.batch()
    for key, value in store.walk(Family.LOGS, log + b"\0", prefix_end(log)):
        group, offset = groups.get(key[PREFIX_BYTES:]), readable(decode_offset, value)
        if group is None or group.settings.kind is GroupKind.SHARED:
            batch.delete(Family.LOGS, key)
            lost["cursors of groups that are gone"] += 1
        elif offset is None:
            batch.put(Family.LOGS, key, encode_offset(head.first_offset))
            lost["cursors: their groups begin with the oldest message"] += 1
        elif offset > head.next_offset:
            batch.put(Family.LOGS, key, encode_offset(head.next_offset))
            lost["cursors behind the end: their groups go on there"] += 1
    store.write(batch)


def _is_broken(check: GroupsCheck, name: bytes, group: GroupRecord) -> bool:
    """Also if its entries cannot be read."""
    found = readable(list, check.check_shared(name, group))
    return found is None or any(violation.rule != "I18" for violation in found)


def _begin_again(
    store: Store, group: GroupRecord, heads: Sequence[LogHead], lost: Counter[str]
) -> None:
    prefix = queue_prefix(group.number)
    entries = QueueEntries(store, prefix)
    floors = [head.next_offset for head in heads]
    for partition, head in enumerate(heads):
        stored = store.get(Family.POSITIONS, position_key(prefix, partition))
        position = None if stored is None else readable(decode_offset, stored)
        floors[partition] = min(
            head.next_offset, head.first_offset if position is None else position
        )
    for family in STATES:
        for key, value in entries.walk(family):
            for state in readable(read_states, family, key, value) or ():
                place = readable(split_reference, state.run.first)
                if family is Family.DEAD:
                    lost["dead letters of groups"] += state.run.count
                elif place is not None and place[0] < len(floors):
                    floors[place[0]] = min(floors[place[0]], place[1])
    batch = store.batch()
    for family in GROUP_FAMILIES:
        entries.delete_all(batch, family)
    for partition, floor in enumerate(floors):
        batch.put(Family.POSITIONS, position_key(prefix, partition), encode_offset(floor))
    batch.put(Family.COUNTERS, prefix, encode_counters(Counters()))
    store.write(batch)
    lost["shared groups began again with their first message that was not acknowledged"] += 1
