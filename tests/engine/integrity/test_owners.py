"""The checker of numbers: each is that of one queue, topic or group."""

import pytest

from queueber.db.families import Family
from queueber.db.records.keys import queue_prefix, text_digest
from tests.engine.topic_damage import TopicCase

X = text_digest("x")
NOBODY = queue_prefix(99)

CASES = [
    TopicCase(
        "I7", "a log of nobody", lambda d: d.batch.put(Family.LAST_OF_KEY, NOBODY + X, bytes(8))
    ),
    TopicCase(
        "I15", "two topics have one log", lambda d: d.change("short", logs=d.record("parent").logs)
    ),
]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_damage_is_reported_under_its_rule_and_no_other(case: TopicCase) -> None:
    assert case.rules_found() == {case.rule} | case.also
