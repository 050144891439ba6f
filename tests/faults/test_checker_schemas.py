"""What the checker finds in schemas of topics, and in messages that were checked against them."""

from typing import Any

import pytest

from faults.history import TOPICS
from faults.topics.facts import TopicFacts
from faults.topics.final import FinalPartition, FinalSchema, FinalTopic, FinalTopics
from faults.topics.schemas import checked, versions
from tests.faults.told import Teller

MESSAGES = [(at, text, "", f"{at:032x}", at, 0) for at, text in enumerate("abc")]
SCHEMAS = (FinalSchema(1, 1, "one"), FinalSchema(2, 2, "two"))


class Story(Teller):
    """`a` comes unchecked, `b` after version 1 and `c` after version 2."""

    def __init__(self) -> None:
        super().__init__()
        self.publish(0, "a", 0, 0)
        self.set_schema(10, "one", 1, 1, [0, 1])
        self.publish(20, "b", 1, 1)
        self.set_schema(30, "two", 2, 2, [1, None])
        self.publish(40, "c", 2, 2)

    def publish(self, at_ms: float, contents: str, version: int, offset: int) -> None:
        given = {"topic": "t", "contents": [contents], "keys": [], "schema_version": version}
        answer = {"partitions": [0], "offsets": [offset], "ids": [f"{offset:032x}"]}
        answer |= {"sequences": [offset], "duplicates": [], "repeat": False}
        told: dict[str, Any] = {"publications": [given | {"expected": None, "producer": None}]}
        self.call(at_ms, "publish", told, {"published": [answer]}, queue=TOPICS)

    def set_schema(
        self, at_ms: float, document: str, version: int, offset: int, expected: list[int | None]
    ) -> None:
        told = {"topic": "t", "document": document, "expected": expected}
        answer = {"version": version, "from_offset": offset}
        self.call(at_ms, "set_schema", told, answer, queue=TOPICS)

    def listed(self, at_ms: float, *schemas: tuple[int, int]) -> None:
        answer = {"schemas": [list(each) for each in schemas]}
        self.call(at_ms, "schemas", {"topic": "t"}, answer, queue=TOPICS)

    def wrong(self, *schemas: FinalSchema, in_force: int = 2) -> set[str]:
        topic = FinalTopic([FinalPartition(0, 3, list(MESSAGES))])
        topic = FinalTopic(topic.partitions, schema_version=in_force, schemas=schemas)
        facts = TopicFacts(self.history, FinalTopics({"t": topic}))
        return {each.rule for rule in (versions, checked) for each in rule(facts)}


def test_versions_in_order_and_messages_that_fit_them_are_right() -> None:
    story = Story()
    story.listed(15, (1, 1))
    story.listed(50, (1, 1), (2, 2))

    assert story.wrong(*SCHEMAS) == set()


@pytest.mark.parametrize(
    ("schemas", "in_force", "wrong"),
    [
        (SCHEMAS[:1], 1, {"schema", "checked"}),
        ((SCHEMAS[0], FinalSchema(2, 3, "two")), 2, {"schema", "checked"}),
        ((SCHEMAS[0], FinalSchema(2, 2, "other")), 2, {"schema"}),
        (SCHEMAS, 1, {"schema"}),
        ((*SCHEMAS, FinalSchema(3, 3, "three")), 3, {"schema"}),
    ],
)
def test_version_that_was_lost_moved_changed_or_invented_is_found(
    schemas: tuple[FinalSchema, ...], in_force: int, wrong: set[str]
) -> None:
    assert Story().wrong(*schemas, in_force=in_force) == wrong


def test_message_that_was_checked_against_another_version_is_found() -> None:
    story = Story()
    story.publish(50, "c", 1, 2)
    told = story.history.calls[-2]
    story.history.calls.remove(told)

    assert story.wrong(*SCHEMAS) == {"checked"}


@pytest.mark.parametrize("expected", [[0, None], [2, None], [None, 1]])
def test_version_that_was_not_expected_is_found(expected: list[int | None]) -> None:
    story = Story()
    del story.history.calls[3]
    story.set_schema(30, "two", 2, 2, expected)

    assert story.wrong(*SCHEMAS) == {"schema"}


@pytest.mark.parametrize("listed", [[(1, 1)], [(1, 1), (2, 1)], [(1, 0), (2, 2)]])
def test_list_without_what_was_set_or_with_other_offsets_is_found(
    listed: list[tuple[int, int]],
) -> None:
    story = Story()
    story.listed(50, *listed)

    assert story.wrong(*SCHEMAS) == {"schema"}
