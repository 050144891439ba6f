"""What the checker finds in the messages that an ordered group got pushed, and in those moved."""

from typing import Any

import pytest

from faults.history import TOPICS
from faults.topics.calls import cursors
from faults.topics.facts import TopicFacts
from faults.topics.final import FinalPartition, FinalTopic, FinalTopics
from faults.topics.pushes import moved, pushed, taken_over
from tests.faults.told import Teller

PLACE: dict[str, Any] = {"topic": "t", "group": "g", "partition": 0}


class Story(Teller):
    def subscribe(self, at_ms: float, name: str) -> None:
        told = {"group": "g", "subscription": name}
        self.call(at_ms, "subscribe", told, {}, queue=TOPICS)

    def push(self, at_ms: float, name: str, offset: int) -> None:
        message = [offset, f"m{offset}", "", f"{offset:032x}", offset, 0]
        told = PLACE | {"subscription": name}
        self.call(at_ms, "pushed", told, {"messages": [message]}, queue=TOPICS)

    def ack(self, at_ms: float, offset: int, name: str = "") -> None:
        told = PLACE | {"offset": offset, "subscription": name}
        self.call(at_ms, "ack", told, {"cursor": offset}, queue=TOPICS)

    def restart(self, at_ms: float) -> None:
        self.call(at_ms, "restart", {}, {}, queue="")

    @property
    def wrong(self) -> list[str]:
        return [each.text for each in pushed(self.facts)]

    @property
    def facts(self) -> TopicFacts:
        return TopicFacts(self.history, FinalTopics())


def test_messages_in_order_are_right_also_after_takeovers_and_restarts() -> None:
    story = Story()
    story.subscribe(0, "a")
    story.push(10, "a", 0)
    story.push(20, "a", 1)
    story.ack(30, 1)
    story.subscribe(40, "b")
    story.push(50, "b", 1)
    story.push(60, "b", 2)
    story.restart(70)
    story.push(80, "b", 1)
    story.push(90, "b", 2)

    assert story.wrong == []


def test_message_that_comes_twice_to_one_consumer_is_found() -> None:
    story = Story()
    story.subscribe(0, "a")
    for at, offset in enumerate([0, 1, 1]):
        story.push(10 + 10 * at, "a", offset)

    assert story.wrong == ["offset 1 was pushed twice", "offset 1 was pushed after 1"]


def test_message_that_is_left_out_is_found() -> None:
    story = Story()
    story.subscribe(0, "a")
    story.push(10, "a", 0)
    story.push(20, "a", 2)

    assert story.wrong == ["offset 2 was pushed after 0"]


def test_consumer_that_begins_before_or_after_the_cursor_is_found() -> None:
    story = Story()
    story.subscribe(0, "a")
    story.push(10, "a", 0)
    story.push(15, "a", 1)
    story.ack(20, 2)
    story.subscribe(30, "before")
    story.push(40, "before", 1)
    story.subscribe(50, "after")
    story.push(60, "after", 3)

    assert story.wrong == [
        "offset 1 was acknowledged, and is pushed again",
        "begins at 3, and nobody has acknowledged more than 2",
    ]


def test_acknowledgement_of_a_consumer_that_was_taken_over_is_found() -> None:
    story = Story()
    story.subscribe(0, "a")
    story.ack(10, 1, "a")
    story.subscribe(20, "b")
    story.ack(30, 2, "b")
    assert list(taken_over(story.facts)) == []

    story.ack(40, 3, "a")

    (found,) = taken_over(story.facts)
    assert (found.rule, found.text) == (
        "taken over",
        "acknowledged 3 after another one had taken over",
    )


@pytest.mark.parametrize(
    ("there", "told"),
    [
        (["m0", "m1"], ""),
        (["m0"], "['m1'] are missing, [] are more, [] are there twice"),
        (["m0", "m1", "m2"], "[] are missing, ['m2'] are more, [] are there twice"),
        (["m1", "m0", "m1"], "[] are missing, [] are more, ['m1'] are there twice"),
    ],
)
def test_each_acknowledged_message_is_moved_once(there: list[str], told: str) -> None:
    messages = [(offset, f"m{offset}", "", "", offset, 0) for offset in range(3)]
    final = FinalTopics({"t": FinalTopic([FinalPartition(0, 3, messages)])}, {("t", "g", 0): 2})
    found = moved(TopicFacts(Teller().history, final), "t", "g", {"there": there})

    assert "".join(each.text for each in found).partition("are there: ")[2] == told


@pytest.mark.parametrize("operation", ["ack", "reset", ""])
def test_a_group_is_untouched_unless_somebody_acknowledged_or_reset(operation: str) -> None:
    teller = Teller()
    if operation:
        teller.call(1, operation, PLACE | {"offset": 2}, {"cursor": 2}, queue=TOPICS)
    final = FinalTopics(untouched={("t", "g"): False, ("t", "other"): True})
    wrong = [str(each) for each in cursors(TopicFacts(teller.history, final))]

    told = "cursor: ('t', 'g'): is not untouched, and nobody asked for that"
    assert wrong == ([] if operation else [told])
