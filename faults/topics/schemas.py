"""Schemas of topics: versions in order that stay, and messages that fit the one in force."""

from collections import defaultdict
from collections.abc import Iterator

from faults.facts import Violation
from faults.history import Call
from faults.topics.facts import Place, TopicFacts
from faults.topics.final import FinalTopic


def versions(facts: TopicFacts) -> Iterator[Violation]:
    """What was set is there at the end, from where it was told to hold, and nothing else is."""
    calls: dict[str, list[Call]] = defaultdict(list)
    for operation in ("create_topic", "set_schema", "schemas"):
        for call in facts.by_operation[operation]:
            calls[call.arguments["topic"]].append(call)
    for name, topic in facts.topics().items():
        of_topic = calls[name]
        set_ = [call for call in of_topic if call.operation == "set_schema"]
        yield from _all_there(name, topic, set_)
        yield from _nothing_else(name, topic, of_topic)
        yield from _as_expected(name, set_)
        yield from _as_listed(name, topic, of_topic)


def _all_there(name: str, topic: FinalTopic, set_: list[Call]) -> Iterator[Violation]:
    there = {(each.version, each.from_offset, each.document) for each in topic.schemas}
    for call in set_:
        told = (call.answer.get("version"), call.answer.get("from_offset"))
        if call.is_ok and (*told, call.arguments["document"]) not in there:
            text = f"version {told[0]} from {told[1]} on is not among {sorted(there)}"
            yield Violation("schema", name, text, (call,))


def _nothing_else(name: str, topic: FinalTopic, calls: list[Call]) -> Iterator[Violation]:
    """The versions are those that somebody set, without a gap up to the one in force."""
    given = {call.arguments.get("document") or call.arguments.get("schema") for call in calls}
    for each in topic.schemas:
        if each.document not in given:
            yield Violation("schema", name, f"nobody has set version {each.version}")
    found = [each.version for each in topic.schemas]
    if found != list(range(1, topic.schema_version + 1)):
        text = f"has versions {found}, and {topic.schema_version} is in force"
        yield Violation("schema", name, text)


def _as_expected(name: str, set_: list[Call]) -> Iterator[Violation]:
    """A version came after the one, and at the offset, that its caller expected; versions that
    were set one after the other are in this order."""
    done = [call for call in set_ if call.is_ok]
    for call in done:
        version, offset = call.given("expected")
        if version not in (None, call.answer["version"] - 1):
            text = f"expected version {version}, and set {call.answer['version']}"
            yield Violation("schema", name, text, (call,))
        if offset not in (None, call.answer["from_offset"]):
            text = f"expected offset {offset}, and it holds from {call.answer['from_offset']}"
            yield Violation("schema", name, text, (call,))
        for before in done:
            is_before = before.ended_ms < call.began_ms
            if is_before and before.answer["version"] >= call.answer["version"]:
                text = f"{call.answer['version']} after {before.answer['version']}"
                yield Violation("schema", name, text, (before, call))


def _as_listed(name: str, topic: FinalTopic, calls: list[Call]) -> Iterator[Violation]:
    """Whoever looked saw what stays, and all that had been set before."""
    there = [(each.version, each.from_offset) for each in topic.schemas]
    for call in calls:
        if call.operation != "schemas" or not call.is_ok:
            continue
        listed = [(version, offset) for version, offset in call.answer["schemas"]]
        if listed != there[: len(listed)]:
            yield Violation("schema", name, f"{listed} were there, now {there} are", (call,))
        for before in calls:
            is_before = before.operation == "set_schema" and before.ended_ms < call.began_ms
            if is_before and before.answer["version"] > len(listed):
                yield Violation("schema", name, "was set, and not listed", (before, call))


def checked(facts: TopicFacts) -> Iterator[Violation]:
    """Every message says the version that was in force at its offset."""
    given: dict[tuple[str, str], set[int]] = defaultdict(set)
    for call in facts.by_operation["publish"]:
        for each in call.given("publications"):
            for contents in each["contents"]:
                given[each["topic"], contents].add(each.get("schema_version") or 0)
    for operation, name_of in (("create_topic", "topic"), ("fork", "name")):
        for call in facts.by_operation[operation]:
            first = call.arguments.get("first") or {"contents": []}
            for contents in first["contents"]:
                given[call.arguments[name_of], contents].add(first.get("schema_version") or 0)
    topics = facts.topics()
    stored: dict[tuple[Place, str], tuple[Call, ...]] = {
        (sent.place, sent.contents): (sent.call,) for sent in facts.sent if sent.is_new
    }
    for name, topic in topics.items():
        for partition, found in enumerate(topic.partitions):
            for message in found.messages:
                stored.setdefault(((name, partition, message[0]), message[1]), ())
    for (place, contents), calls in stored.items():
        known = topics.get(place[0])
        said = given.get((place[0], contents))
        if known is None or said is None:
            continue
        in_force = [each.version for each in known.schemas if each.from_offset <= place[2]]
        if max(in_force, default=0) not in said:
            text = f"{contents} said {said}, and {max(in_force, default=0)} was in force"
            yield Violation("checked", str(place), text, calls)
