"""The checker of topics: a sound store passes, and damage of every kind is reported."""

import pytest

from queueber.db.families import Family
from queueber.db.records.queues import Counters, decode_counters, encode_counters
from queueber.db.records.topics import (
    Inherited,
)
from queueber.engine.integrity.check_store import check_store
from queueber.engine.topics.sequences import PUBLISHED_KEY
from queueber.engine.topics.topics import TOPICS_KEY
from tests.engine.topic_damage import TopicCase, TopicDamage

CASES = [
    TopicCase(
        "I7",
        "a record cannot be read",
        lambda d: d.batch.put(Family.TOPICS, d.prefix("plain"), b"?"),
        {"I16"},
    ),
    TopicCase(
        "I5",
        "counters of items",
        lambda d: d.batch.put(
            Family.COUNTERS, d.prefix("parent"), encode_counters(Counters(ready=1))
        ),
    ),
    TopicCase("I15", "a topic has no partitions", lambda d: d.change("short", logs=())),
    TopicCase(
        "I15", "the parent counts another number of forks", lambda d: d.change("parent", forks=2)
    ),
    TopicCase("I15", "the parent counts no forks", lambda d: d.change("parent", forks=0)),
    TopicCase(
        "I15",
        "a fork shares more than there is",
        lambda d: d.change("child", inherited=(Inherited(0, d.record("parent").logs[0], 0, 5),)),
    ),
    TopicCase(
        "I15",
        "a fork does not share all before its own",
        lambda d: d.change("child", inherited=(Inherited(0, d.record("parent").logs[0], 0, 2),)),
    ),
    TopicCase(
        "I15",
        "a fork shares a log of nobody",
        lambda d: d.change("child", inherited=(Inherited(0, 99, 0, 3),)),
    ),
    TopicCase("I15", "a fork has another origin", lambda d: d.change("child", origin=99)),
    TopicCase("I15", "a fork began past its end", lambda d: d.change("child", fork_offset=99)),
    TopicCase("I15", "a fork has a parent that is gone", lambda d: d.change("child", parent=99)),
    TopicCase(
        "I16",
        "a name leads to another topic",
        lambda d: d.batch.put(Family.TOPIC_NAMES, b"plain", d.prefix("keyed")),
    ),
    TopicCase("I16", "a name is missing", lambda d: d.batch.delete(Family.TOPIC_NAMES, b"plain")),
    TopicCase(
        "I16", "an alias is missing", lambda d: d.batch.delete(Family.TOPIC_NAMES, b"other name")
    ),
    TopicCase(
        "I16",
        "a name of a deleted topic",
        lambda d: d.batch.put(Family.TOPIC_NAMES, b"gone", d.prefix("gone")),
    ),
    TopicCase(
        "I16",
        "the count of topics is wrong",
        lambda d: d.batch.put(Family.DEFAULT, TOPICS_KEY, bytes(8)),
    ),
    TopicCase(
        "I19",
        "a sequence would come again",
        lambda d: d.batch.put(Family.DEFAULT, PUBLISHED_KEY, (3).to_bytes(8) + b"\xff" * 16),
    ),
    TopicCase(
        "I19",
        "an id would come again",
        lambda d: d.batch.put(Family.DEFAULT, PUBLISHED_KEY, (300).to_bytes(8) + bytes(16)),
    ),
]


def test_sound_topics_have_nothing_wrong() -> None:
    assert check_store(TopicDamage().store) == []


def test_counters_that_were_written_before_one_was_added_are_sound() -> None:
    """What the record does not have reads as 0: also a time, which is a lower bound."""
    damage = TopicDamage()
    kept = damage.store.get(Family.COUNTERS, damage.prefix("plain"))
    counters = decode_counters(kept) if kept is not None else Counters()
    counters.expiry_due_ms = counters.cap_due_ms = 0
    damage.batch.put(Family.COUNTERS, damage.prefix("plain"), encode_counters(counters))
    damage.write()

    assert check_store(damage.store) == []


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_damage_of_topics_is_reported_under_its_rule_and_no_other(case: TopicCase) -> None:
    assert case.rules_found() == {case.rule} | case.also


def test_violation_names_the_topic_at_fault() -> None:
    damage = TopicDamage()
    damage.delete_block("plain", 3)
    damage.write()

    assert {each.queue for each in check_store(damage.store)} == {"topic 'plain'"}
