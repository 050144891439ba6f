"""Conditions: what publications demand of their topics, first messages, and cut forks."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from faults.facts import Violation
from faults.history import Call
from faults.topics.facts import TopicFacts


def conditions(facts: TopicFacts) -> Iterator[Violation]:
    """A publish that was stored had the type of its topic, a greater text, and if it
    demanded that a topic of one partition."""
    texts: dict[str, list[tuple[Call, str]]] = defaultdict(list)
    for call in facts.by_operation["publish"]:
        answers = call.answer.get("published") or ()
        for given, answer in zip(call.given("publications"), answers, strict=False):
            topic, told = given["topic"], facts.final.topics.get(given["topic"])
            if topic in facts.gone or told is None or not answer["offsets"]:
                continue
            kind = given.get("content_type")
            if kind and not _is_type(kind, told.content_type):
                yield Violation("type", topic, f"took {kind!r}", (call,))
            if given.get("one_partition") and len(told.partitions) != 1:
                yield Violation("partitions", topic, "is no stream, and took this", (call,))
            if given.get("text_sequence"):
                texts[topic].append((call, given["text_sequence"]))
    for topic, stored in texts.items():
        for call, text in stored:
            for before, known in stored:
                if before.ended_ms < call.began_ms and text <= known:
                    yield Violation("text", topic, f"{text} after {known}", (before, call))


def _is_type(given: str, known: str) -> bool:
    return (
        given.split(";", maxsplit=1)[0].lower()
        == (known or "application/octet-stream").split(";", maxsplit=1)[0].lower()
    )


def first_messages(facts: TopicFacts) -> Iterator[Violation]:
    """A topic that began with messages has them, all of them, however its call ended."""
    for operation, name_of in (("create_topic", "topic"), ("fork", "name")):
        for call in facts.by_operation[operation]:
            first: Mapping[str, Any] = call.arguments.get("first") or {}
            name = call.arguments[name_of]
            told = facts.final.topics.get(name)
            if not first or told is None or name in facts.gone:
                continue
            begin = 0
            if operation == "fork":
                begin = call.arguments["offset"] + bool(call.arguments["cut_bytes"])
            found = [message[1] for message in told.partitions[0].messages if message[0] >= begin]
            if found[: len(first["contents"])] != first["contents"]:
                yield Violation("first", name, f"begins with {found}", (call,))
            if first["closes"] and not told.is_closed:
                yield Violation("first", name, "is open", (call,))


def cut(facts: TopicFacts) -> Iterator[Violation]:
    """A fork that begins inside of a message has so many bytes of it, and then its own."""
    known = {seen.place: seen.message[1] for seen in facts.seen}
    for name, call in facts.forks.items():
        size, told = call.arguments["cut_bytes"], facts.final.topics.get(name)
        if not size or told is None or name in facts.gone or not told.partitions[0].messages:
            continue
        offset, source = call.arguments["offset"], call.arguments["topic"]
        found = [m[1] for m in told.partitions[0].messages if m[0] == offset]
        whole = known.get((source, 0, offset))
        if whole is not None and source not in facts.gone and found != [whole[:size]]:
            yield Violation("cut", name, f"has {found} of {whole!r}", (call,))
