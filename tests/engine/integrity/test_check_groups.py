"""The checker of groups."""

import pytest

from queueber.db.families import Family
from queueber.db.records.keys import queue_prefix
from queueber.db.records.log import encode_offset, reader_key
from queueber.db.records.topics import (
    GroupRecord,
    encode_group,
    group_key,
)
from queueber.model import GroupKind, GroupSettings
from tests.engine.topic_damage import TopicCase, TopicDamage


def put_group(d: TopicDamage, number: int) -> None:
    record = encode_group(GroupRecord(number, 1))
    d.batch.put(Family.GROUPS, group_key(d.prefix("plain"), "new"), record)


def put_shared_group(d: TopicDamage, position: bytes) -> None:
    number = d.engine.kernel.numbers.next
    record = GroupRecord(number, 1, GroupSettings(GroupKind.SHARED))
    d.batch.put(Family.DEFAULT, b"next_queue", (number + 1).to_bytes(4))
    d.batch.put(Family.GROUPS, group_key(d.prefix("plain"), "new"), encode_group(record))
    d.batch.put(Family.POSITIONS, queue_prefix(number) + position, encode_offset(7))


def begin_elsewhere(d: TopicDamage) -> None:
    group = d.topic("plain").groups["g"]
    d.batch.put(Family.GROUPS, group.key, encode_group(group.record._replace(began_at=(1,) * 9)))


def shared(d: TopicDamage) -> bytes:
    return d.topic("plain").groups["shared"].prefix


def move_back(d: TopicDamage) -> None:
    """The position of partition 0 is before messages that a consumer had."""
    d.batch.put(Family.POSITIONS, shared(d) + bytes(2), encode_offset(2))


def copy_dead(d: TopicDamage) -> None:
    """A dead letter is ready as well."""
    [(key, value)] = d.store.scan(Family.DEAD, shared(d), shared(d) + b"\xff", 1)
    [(ready, _)] = d.store.scan(Family.VISIBILITY_INDEX, shared(d), shared(d) + b"\xff", 1)
    moved = ready[:-16] + key[4:]
    d.batch.put(Family.VISIBILITY_INDEX, moved, value[9:])


def lose_lease(d: TopicDamage) -> None:
    [(key, _)] = d.store.scan(Family.LEASES, shared(d), shared(d) + b"\xff", 1)
    d.batch.delete(Family.LEASES, key)


CASES = [
    TopicCase("I17", "a message that was had is fresh again", move_back),
    TopicCase("I17", "a message is in two states", copy_dead, {"I5", "I6", "I9", "I11"}),
    TopicCase("I5", "a lease of a group is lost", lose_lease, {"I3", "I4"}),
    TopicCase(
        "I5",
        "counters of a group are lost",
        lambda d: d.batch.delete(Family.COUNTERS, shared(d)),
        {"I6", "I8"},
    ),
    TopicCase("I17", "a group has the number of another", lambda d: put_group(d, 1)),
    TopicCase("I17", "a group began in partitions that there are not", begin_elsewhere),
    TopicCase("I17", "a group has a number that is to come", lambda d: put_group(d, 500)),
    TopicCase(
        "I17",
        "a cursor is behind the end",
        lambda d: d.batch.put(Family.LOGS, reader_key(d.log("plain"), "g"), encode_offset(7)),
    ),
    TopicCase(
        "I17",
        "a cursor of no group",
        lambda d: d.batch.put(Family.LOGS, reader_key(d.log("plain"), "h"), encode_offset(1)),
    ),
    TopicCase(
        "I17",
        "a cursor cannot be read",
        lambda d: d.batch.put(Family.LOGS, reader_key(d.log("plain"), "g"), b"?"),
    ),
    TopicCase(
        "I17",
        "a group cannot be read",
        lambda d: d.batch.put(Family.GROUPS, group_key(d.prefix("plain"), "g"), b"?"),
    ),
    TopicCase("I17", "a shared group is behind the end", lambda d: put_shared_group(d, bytes(2))),
    TopicCase("I17", "a shared group is in no partition", lambda d: put_shared_group(d, b"\0\2")),
]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_damage_is_reported_under_its_rule_and_no_other(case: TopicCase) -> None:
    assert case.rules_found() == {case.rule} | case.also
