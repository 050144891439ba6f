"""The checker of a topic's log: blocks, head and keys."""

import pytest

from queueber.db.families import Family
from queueber.db.records.keys import text_digest
from queueber.db.records.log import encode_offset
from tests.engine.topic_damage import TopicCase, TopicDamage


def put_earlier_ids(d: TopicDamage) -> None:
    """The second block has the ids and sequences of the first."""
    first, second = d.block("plain", 1), d.block("plain", 3)
    d.put_block("plain", 3, second[:24] + first[24:48] + second[48:])


X = text_digest("x")
Z = text_digest("z")

CASES = [
    TopicCase(
        "I15", "a block is missing at the front", lambda d: d.delete_block("plain", 1), {"I17"}
    ),
    TopicCase(
        "I15", "a block is missing in the middle", lambda d: d.delete_block("plain", 3), {"I17"}
    ),
    TopicCase("I15", "a block is missing at the end", lambda d: d.delete_block("plain", 5)),
    TopicCase("I15", "a block cannot be read", lambda d: d.put_block("plain", 3, b"?"), {"I17"}),
    TopicCase(
        "I15",
        "a block is cut short",
        lambda d: d.put_block("plain", 3, d.block("plain", 3)[:-1]),
        {"I17"},
    ),
    TopicCase("I15", "ids come twice", put_earlier_ids),
    TopicCase(
        "I15",
        "the head has gone on without a block",
        lambda d: d.change_head("plain", next_offset=7),
    ),
    TopicCase(
        "I15",
        "the head begins behind its first block",
        lambda d: d.change_head("plain", first_offset=2),
    ),
    TopicCase(
        "I15",
        "the head of keys ends before its blocks",
        lambda d: d.change_head("keyed", next_offset=3),
    ),
    TopicCase(
        "I15",
        "the head cannot be read",
        lambda d: d.batch.put(Family.LOGS, d.log("plain"), b"?"),
        {"I17"},
    ),
    TopicCase(
        "I19",
        "an earlier message is the last of a key",
        lambda d: d.batch.put(Family.LAST_OF_KEY, d.log("keyed") + X, encode_offset(1)),
    ),
    TopicCase(
        "I19",
        "a key has no last message",
        lambda d: d.batch.delete(Family.LAST_OF_KEY, d.log("keyed") + X),
    ),
    TopicCase(
        "I19",
        "a key of no message",
        lambda d: d.batch.put(Family.LAST_OF_KEY, d.log("keyed") + Z, encode_offset(1)),
    ),
    TopicCase(
        "I19",
        "the last of a key is to be deleted",
        lambda d: d.batch.put(Family.REPLACED, d.log("keyed") + encode_offset(2), b""),
    ),
    TopicCase(
        "I19",
        "a message that is gone is to be deleted",
        lambda d: d.batch.put(Family.REPLACED, d.log("keyed") + encode_offset(0), b""),
    ),
    TopicCase(
        "I19",
        "an earlier message is not to be deleted",
        lambda d: d.batch.delete(Family.REPLACED, d.log("keyed") + encode_offset(1)),
    ),
    TopicCase(
        "I19",
        "a tombstone stays",
        lambda d: d.batch.delete_range(
            Family.FORGET, d.prefix("keyed"), d.prefix("keyed") + b"\xff"
        ),
        {"I11"},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_damage_is_reported_under_its_rule_and_no_other(case: TopicCase) -> None:
    assert case.rules_found() == {case.rule} | case.also
