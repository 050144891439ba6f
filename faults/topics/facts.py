"""The facts of a history about topics, for the rules."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from faults.history import TOPICS, Call, History, Outcome
from faults.topics.final import FinalTopic, FinalTopics, Message
from faults.topics.settled import ACK_UP_TO, as_cancel, place_id

_SHOWS = ("read", "delivered", "pushed")
"""Operations whose answers have messages."""

Place = tuple[str, int, int]
"""Topic, partition and offset."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A message of an acknowledged publish, and where it is."""

    call: Call
    place: Place
    contents: str
    key: str
    id: str
    sequence: int
    is_new: bool
    """False: it was there before, by its dedup id or its producer's number."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A message that somebody has read, or that is there at the end."""

    place: Place
    message: Message
    call: Call | None


class TopicFacts:
    def __init__(self, history: History, final: FinalTopics) -> None:
        self.final = final
        self.by_operation: dict[str, list[Call]] = defaultdict(list)
        for call in history.calls:
            if call.queue == TOPICS and call.may_have_happened:
                self.by_operation[call.operation].append(call)
        self.restarts = [call for call in history.calls if call.operation == "restart"]
        self.sent: list[Sent] = []
        self.tried: dict[str, dict[str, list[Call]]] = defaultdict(lambda: defaultdict(list))
        """By topic and contents: the calls that published it, or may have."""
        for call in self.by_operation["publish"]:
            self._read_publish(call)
        for operation, name_of in (("create_topic", "topic"), ("fork", "name")):
            for call in self.by_operation[operation]:
                if first := call.given("first"):
                    self._read_sent(call, call.arguments[name_of], first, 0)
        for call in self.by_operation["together"]:
            answers = call.answer.get("published") or ()
            for at, topic in enumerate(call.given("topics")):
                self.tried[topic][call.arguments["contents"]].append(call)
                if answers:
                    self._read_answer(call, topic, [call.arguments["contents"]], [""], answers[at])
        self.gone = {
            call.arguments["topic"]
            for call in self.by_operation["delete_topic"]
            if call.answer.get("done") != [False]
        }
        """Topics that were, or may have been, deleted."""
        self.forks = {call.arguments["name"]: call for call in self.by_operation["fork"]}
        self.seen = list(self._all_seen())

    def _read_publish(self, call: Call) -> None:
        for at, publication in enumerate(call.given("publications")):
            self._read_sent(call, publication["topic"], publication, at)

    def _read_sent(self, call: Call, topic: str, publication: Any, at: int) -> None:
        answers: list[Any] = call.answer.get("published") or []
        contents = publication["contents"]
        for each in contents:
            self.tried[topic][each].append(call)
        if answers:
            keys = publication["keys"] or [""] * len(contents)
            self._read_answer(call, topic, contents, keys, answers[at])

    def _read_answer(
        self, call: Call, topic: str, contents: list[str], keys: list[str], answer: dict[str, Any]
    ) -> None:
        duplicates = answer["duplicates"] or [False] * len(contents)
        for number, offset in enumerate(answer["offsets"]):
            self.sent.append(
                Sent(
                    call,
                    (topic, answer["partitions"][number], offset),
                    contents[number],
                    keys[number],
                    answer["ids"][number],
                    answer["sequences"][number],
                    not answer["repeat"] and not duplicates[number],
                )
            )

    def _all_seen(self) -> Iterator[Seen]:
        for call in [call for operation in _SHOWS for call in self.by_operation[operation]]:
            topic, partition = call.arguments["topic"], call.arguments["partition"]
            for message in call.answer.get("messages", ()):
                yield Seen((topic, partition, message[0]), tuple(message), call)
        for name, topic in self.final.topics.items():
            for partition, found in enumerate(topic.partitions):
                for each in found.messages:
                    yield Seen((name, partition, each[0]), each, None)

    def topics(self) -> dict[str, FinalTopic]:
        """Those that were never deleted."""
        return {name: each for name, each in self.final.topics.items() if name not in self.gone}

    def reads_of(self, topic: str, partition: int) -> list[Call]:
        return [
            call
            for call in self.by_operation["read"]
            if call.is_ok
            and (call.arguments["topic"], call.arguments["partition"]) == (topic, partition)
        ]


def with_adds(history: History, groups: Mapping[str, str], bridges: Mapping[str, str]) -> History:
    """The history with what other calls add to queues and groups, as adds.

    `groups` has the topic of each group that shares messages: a publish is an add to it, and the id
    of an item is the reference of its message. `bridges` has the topic whose messages each of some
    queues gets, with ids that no caller knows.
    """
    calls = list(history.calls)
    for call in history.calls:
        if call.operation == ACK_UP_TO and call.may_have_happened:
            calls.append(as_cancel(call))
        if call.queue != TOPICS or not call.may_have_happened:
            continue
        if call.operation == "together":
            arguments: dict[str, Any] = {"contents": [call.arguments["contents"]]}
            ids = call.answer.get("ids")
            answer = {"ids": ids, "duplicates": []} if ids else {}
            calls.append(_add(call, call.arguments["into"], arguments, answer))
        for queue, topic in groups.items():
            calls += _adds_of(call, queue, topic)
        for queue, topic in bridges.items():
            unknown = replace(call, outcome=Outcome.UNKNOWN, ended_ms=inf, answer={})
            calls += [
                replace(add, arguments={"contents": add.arguments["contents"]})
                for add in _adds_of(unknown, queue, topic)
            ]
    return History(calls)


def _adds_of(call: Call, queue: str, topic: str) -> Iterator[Call]:
    """A publish to a topic, or a call together, as an add to a group."""
    answers = call.answer.get("published") or ()
    if call.operation == "publish":
        for at, publication in enumerate(call.given("publications")):
            if publication["topic"] == topic:
                arguments = {
                    "contents": publication["contents"],
                    "keys": publication["dedup_ids"],
                    "producer": publication["producer"],
                }
                yield _add(call, queue, arguments, _added(answers[at]) if answers else {})
    elif call.operation == "together" and topic in call.given("topics"):
        at = call.given("topics").index(topic)
        arguments = {"contents": [call.arguments["contents"]]}
        yield _add(call, queue, arguments, _added(answers[at]) if answers else {})


def _add(call: Call, queue: str, arguments: dict[str, Any], answer: dict[str, Any]) -> Call:
    return Call(
        call.client, "add", call.began_ms, call.ended_ms, call.outcome, arguments, answer, queue
    )


def _added(answer: dict[str, Any]) -> dict[str, Any]:
    places = zip(answer["partitions"], answer["offsets"], strict=True)
    return {"ids": [place_id(*place) for place in places], "duplicates": answer["duplicates"]}
