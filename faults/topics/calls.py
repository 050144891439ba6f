"""Calls: the order of publishes, what they ask for, the cursors of groups, and calls together."""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import combinations
from math import inf

from faults.facts import Violation
from faults.final_state import FinalState
from faults.history import Call
from faults.topics.facts import TopicFacts


def order(facts: TopicFacts) -> Iterator[Violation]:
    """A publish that began when another had ended has later offsets, ids and sequences."""
    new = [sent for sent in facts.sent if sent.is_new and sent.place[0] not in facts.gone]
    new.sort(key=lambda sent: sent.call.began_ms)
    for at, later in enumerate(new):
        for earlier in new[max(0, at - 40) : at]:
            if earlier.call.ended_ms >= later.call.began_ms:
                continue
            is_later = (later.sequence, later.id) > (earlier.sequence, earlier.id)
            same = earlier.place[:2] == later.place[:2]
            if later.id <= earlier.id or not is_later or (same and later.place <= earlier.place):
                text = f"is not after {earlier.place}, which was published before"
                yield Violation("order", str(later.place), text, (earlier.call, later.call))
    for one, two in combinations(new, 2):
        if one.sequence == two.sequence or one.id == two.id:
            text = f"has the id or sequence of {two.place}"
            yield Violation("order", str(one.place), text, (one.call, two.call))


def asked(facts: TopicFacts) -> Iterator[Violation]:
    """A publish that was acknowledged got the offset that it asked for, and its topic was open."""
    closed: dict[str, Call] = {}
    for call in facts.by_operation["close"]:
        if call.is_ok:
            closed.setdefault(call.arguments["topic"], call)
    for call in facts.by_operation["publish"]:
        answers = call.answer.get("published") or ()
        for publication, answer in zip(call.given("publications"), answers, strict=False):
            topic, expected = publication["topic"], publication["expected"]
            is_new = answer["offsets"] and not answer["repeat"] and not any(answer["duplicates"])
            if expected is not None and is_new and answer["offsets"][0] != expected:
                text = f"expected {expected}, and got {answer['offsets']}"
                yield Violation("expected", topic, text, (call,))
            end = None if topic in facts.gone else closed.get(topic)
            if is_new and end is not None and end.ended_ms <= call.began_ms:
                yield Violation("closed", topic, "takes messages after its close", (end, call))


def producers(facts: TopicFacts) -> Iterator[Violation]:
    """A producer's call is taken only after the one before it."""
    for call in facts.by_operation["publish"]:
        for publication in call.given("publications"):
            producer, topic = publication["producer"], publication["topic"]
            if not producer or not call.is_ok or producer[2] == 1:
                continue
            before = [*producer[:2], producer[2] - 1]
            is_known = any(
                each["producer"] == before and each["topic"] == topic
                for other in facts.by_operation["publish"]
                for each in other.given("publications")
                if other.began_ms <= call.ended_ms
            )
            if not is_known:
                yield Violation("producer", str(producer), "left a gap, and was taken", (call,))


def cursors(facts: TopicFacts) -> Iterator[Violation]:
    """A cursor goes back only by a reset, and on only by what somebody asked for."""
    told = [*facts.by_operation["ack"], *facts.by_operation["cursor"]]
    told = [call for call in told if call.is_ok and call.arguments["topic"] not in facts.gone]
    for later in told:
        asks = [
            call.arguments["offset"]
            for call in [*facts.by_operation["ack"], *facts.by_operation["reset"]]
            if _same(call, later) and call.began_ms <= later.ended_ms
        ]
        asks += [
            call.given("ack")[3]
            for call in facts.by_operation["together"]
            if call.began_ms <= later.ended_ms
        ]
        if later.answer["cursor"] > (limit := max(asks, default=0)):
            text = f"is at {later.answer['cursor']}, and nobody went further than {limit}"
            yield Violation("cursor", str(later.arguments), text, (later,))
        for earlier in told:
            if not _same(earlier, later) or earlier.ended_ms >= later.began_ms:
                continue
            is_back = later.answer["cursor"] < earlier.answer["cursor"]
            if is_back and not _is_reset(facts, earlier, later.ended_ms):
                text = f"went back to {later.answer['cursor']}"
                yield Violation("cursor", str(later.arguments), text, (earlier, later))
    for (topic, group, partition), at in facts.final.cursors.items():
        wanted = {"topic": topic, "group": group, "partition": partition}
        for earlier in told:
            is_same = {name: earlier.arguments[name] for name in wanted} == wanted
            if is_same and at < earlier.answer["cursor"] and not _is_reset(facts, earlier, inf):
                yield Violation("cursor", str(wanted), f"is at {at} at the end", (earlier,))


def _same(one: Call, two: Call) -> bool:
    names = ("topic", "group", "partition")
    return all(one.arguments[name] == two.arguments[name] for name in names)


def _is_reset(facts: TopicFacts, since: Call, until_ms: float) -> bool:
    return any(
        _same(call, since) and call.ended_ms >= since.began_ms and call.began_ms <= until_ms
        for call in facts.by_operation["reset"]
    )


def together(facts: TopicFacts, queues: Mapping[str, FinalState]) -> Iterator[Violation]:
    """All of a call has happened, or nothing. Nobody takes its items out of its queue."""
    for call in facts.by_operation["together"]:
        contents = call.arguments["contents"]
        found = [
            any(
                message[1] == contents
                for partition in facts.final.topics[topic].partitions
                for message in partition.messages
            )
            for topic in call.given("topics")
        ]
        if len(set(found)) > 1 or (call.is_ok and not all(found)):
            yield Violation("together", contents, f"happened in part: {found}", (call,))
        items = queues[call.arguments["queue"]].items.values()
        if any(item.contents == contents for item in items) != any(found):
            yield Violation("together", contents, "was added or published alone", (call,))


def bridged(facts: TopicFacts, queue: FinalState, topic: str) -> Iterator[Violation]:
    """Every message of the topic is in the queue, once."""
    items = Counter(item.contents for item in queue.items.values())
    messages = Counter(
        message[1]
        for partition in facts.final.topics[topic].partitions
        for message in partition.messages
    )
    if items != messages:
        text = f"the queue lacks {messages - items}, and has {items - messages} too often"
        yield Violation("bridged", topic, text)


def late(facts: TopicFacts) -> Iterator[Violation]:
    """What is older than the topic keeps is gone, once nothing has happened for long."""
    for name, topic in facts.final.topics.items():
        if not topic.retention_ms or topic.keeps_last:
            continue
        for partition, found in enumerate(topic.partitions):
            old = [
                message[0]
                for message in found.messages
                if message[5] + topic.retention_ms + LATE_MS < topic.now_ms
            ]
            if old:
                yield Violation("late", f"{name}/{partition}", f"{old} are still there")


LATE_MS = 1000
"""How long the sweeper may take at the end, when its clock may have been set back."""
