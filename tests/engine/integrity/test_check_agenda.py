"""The checker of the agenda."""

import pytest

from queueber.db.families import Family
from queueber.db.records.keys import queue_prefix
from queueber.db.records.topics import (
    agenda_key,
    agenda_time_key,
)
from tests.engine.topic_damage import TopicCase, TopicDamage


def lose_noted_time(d: TopicDamage) -> None:
    """One of the two entries of a topic in the agenda."""
    d.batch.delete(Family.AGENDA, agenda_key(int.from_bytes(d.prefix("short"))))


def note_nobody(d: TopicDamage) -> None:
    d.batch.put(Family.AGENDA, agenda_time_key(5, 99), NOBODY)
    d.batch.put(Family.AGENDA, agenda_key(99), (5).to_bytes(8))


NOBODY = queue_prefix(99)

CASES = [
    TopicCase("I18", "what is due is not noted", lambda d: d.forget_noted("short")),
    TopicCase("I18", "a deleted topic is not noted", lambda d: d.forget_noted("gone")),
    TopicCase("I18", "what is to be trimmed is not noted", lambda d: d.forget_noted("plain")),
    TopicCase("I18", "replaced messages are not noted", lambda d: d.forget_noted("keyed")),
    TopicCase("I18", "one of the two entries is missing", lose_noted_time),
    TopicCase(
        "I18",
        "a time of nobody",
        lambda d: d.batch.put(Family.AGENDA, agenda_time_key(5, 99), NOBODY),
    ),
    TopicCase("I18", "nobody is noted", note_nobody),
]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_damage_is_reported_under_its_rule_and_no_other(case: TopicCase) -> None:
    assert case.rules_found() == {case.rule} | case.also
