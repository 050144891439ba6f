"""Calls: the order of publishes, what they ask for, the cursors of groups, and calls together."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from math import inf

from faults.facts import Violation
from faults.final_state import FinalState
from faults.history import Call
from faults.topics.facts import Sent, TopicFacts


def order(facts: TopicFacts) -> Iterator[Violation]:
    """A publish that began when another had ended has later offsets, ids and sequences."""
    new = [sent for sent in facts.sent if sent.is_new and sent.place[0] not in facts.gone]
    ended = sorted(new, key=lambda sent: sent.call.ended_ms)
    at = 0
    last: dict[object, Sent] = {}
    """The latest one that had ended: of all, and of each partition."""
    for sent in sorted(new, key=lambda sent: sent.call.began_ms):
        while ended[at].call.ended_ms < sent.call.began_ms:
            for place in (None, ended[at].place[:2]):
                last[place] = max(last.get(place, ended[at]), ended[at], key=lambda s: s.sequence)
            at += 1
        for place in (None, sent.place[:2]):
            before = last.get(place)
            if before is None:
                continue
            is_after = (sent.id, sent.sequence) > (before.id, before.sequence)
            if not is_after or (place and sent.place <= before.place):
                text = f"is not after {before.place}, which was published before"
                yield Violation("order", str(sent.place), text, (before.call, sent.call))
    known: dict[object, Sent] = {}
    for sent in new:
        for name in (sent.id, sent.sequence):
            if known.setdefault(name, sent) is not sent:
                text = f"has the id or sequence of {known[name].place}"
                yield Violation("order", str(sent.place), text, (known[name].call, sent.call))


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
    began: dict[tuple[object, ...], float] = {}
    calls = [
        (call, (publication["topic"], *publication["producer"]))
        for call in facts.by_operation["publish"]
        for publication in call.given("publications")
        if publication["producer"]
    ]
    for call, turn in calls:
        began[turn] = min(call.began_ms, began.get(turn, inf))
    for call, (topic, producer, epoch, sequence) in calls:
        before = began.get((topic, producer, epoch, sequence - 1), inf)
        if call.is_ok and sequence > 1 and before > call.ended_ms:
            text = f"{sequence} left a gap, and was taken"
            yield Violation("producer", f"{producer} {epoch}", text, (call,))


Cursor = tuple[str, str, int]
"""Topic, group and partition."""


def cursors(facts: TopicFacts) -> Iterator[Violation]:
    """A cursor goes back only by a reset, and on only by what somebody asked for."""
    told: dict[Cursor, list[Call]] = defaultdict(list)
    asked: dict[Cursor, list[tuple[float, int]]] = defaultdict(list)
    resets: dict[Cursor, list[Call]] = defaultdict(list)
    for operation in ("ack", "cursor", "reset"):
        for call in facts.by_operation[operation]:
            cursor = _cursor(call)
            if operation != "cursor":
                asked[cursor].append((call.began_ms, call.arguments["offset"]))
            if operation == "reset":
                resets[cursor].append(call)
            elif call.is_ok and cursor[0] not in facts.gone:
                told[cursor].append(call)
    for call in facts.by_operation["together"]:
        if ack := call.given("ack"):
            asked[ack[0], ack[1], ack[2]].append((call.began_ms, ack[3]))
    yield from _untouched(facts, {cursor[:2] for cursor in asked})
    for cursor, calls in told.items():
        yield from _gone_on(cursor, calls, asked[cursor])
        yield from _gone_back(facts, cursor, calls, resets[cursor])


def _untouched(facts: TopicFacts, moved: set[tuple[str, str]]) -> Iterator[Violation]:
    """A group that nobody acknowledged for, or reset, says so."""
    for group, is_untouched in facts.final.untouched.items():
        if not is_untouched and group not in moved:
            yield Violation("cursor", str(group), "is not untouched, and nobody asked for that")


def _cursor(call: Call) -> Cursor:
    return call.arguments["topic"], call.arguments["group"], call.arguments["partition"]


def _gone_on(
    cursor: Cursor, calls: list[Call], asked: list[tuple[float, int]]
) -> Iterator[Violation]:
    asked, at, limit = sorted(asked), 0, 0
    for call in sorted(calls, key=lambda call: call.ended_ms):
        while at < len(asked) and asked[at][0] <= call.ended_ms:
            limit, at = max(limit, asked[at][1]), at + 1
        if call.answer["cursor"] > limit:
            text = f"is at {call.answer['cursor']}, and nobody went further than {limit}"
            yield Violation("cursor", str(cursor), text, (call,))


def _gone_back(
    facts: TopicFacts, cursor: Cursor, calls: list[Call], resets: list[Call]
) -> Iterator[Violation]:
    ended = sorted(calls, key=lambda call: call.ended_ms)
    at = 0
    furthest: Call | None = None
    for later in sorted(calls, key=lambda call: call.began_ms):
        while ended[at].ended_ms < later.began_ms:
            call, at = ended[at], at + 1
            is_further = furthest is None or call.answer["cursor"] >= furthest.answer["cursor"]
            if is_further or _is_reset(resets, furthest, call.ended_ms):
                furthest = call
        if furthest is None or later.answer["cursor"] >= furthest.answer["cursor"]:
            continue
        if not _is_reset(resets, furthest, later.ended_ms):
            text = f"went back to {later.answer['cursor']}"
            yield Violation("cursor", str(cursor), text, (furthest, later))
    final = facts.final.cursors.get(cursor, inf)
    for call in calls:
        if final < call.answer["cursor"] and not _is_reset(resets, call, inf):
            yield Violation("cursor", str(cursor), f"is at {final} at the end", (call,))


def _is_reset(resets: list[Call], since: Call | None, until_ms: float) -> bool:
    """Whether it may have been set back after a call."""
    return since is None or any(
        call.ended_ms >= since.began_ms and call.began_ms <= until_ms for call in resets
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
        items = queues[call.arguments["into"]].items.values()
        if any(item.contents == contents for item in items) != any(found):
            yield Violation("together", contents, "was added or published alone", (call,))


def bridged(facts: TopicFacts, queue: FinalState, topic: str) -> Iterator[Violation]:
    """Every message of the topic is in the queue, once. A topic that was deleted may have lost
    messages before, and left others there."""
    items = Counter(item.contents for item in queue.items.values())
    final = facts.final.topics.get(topic)
    messages = Counter(
        message[1]
        for partition in (final.partitions if final is not None and final.is_bridged else ())
        for message in partition.messages
    )
    if topic in facts.gone:
        messages |= Counter(set(items))
    if items != messages:
        text = f"the queue lacks {messages - items}, and has {items - messages} too often"
        yield Violation("bridged", topic, text)


def late(facts: TopicFacts) -> Iterator[Violation]:
    """What the topic does not keep is gone, once nothing has happened for long: what is too old,
    and what all groups have acknowledged."""
    for name, topic in facts.final.topics.items():
        for partition, found in enumerate(topic.partitions if topic.block_messages else ()):
            cursors = [
                at for place, at in facts.final.cursors.items() if place[::2] == (name, partition)
            ]
            end = min(cursors, default=0)
            if end - found.first >= (1 if end == found.end else topic.block_messages):
                text = f"{found.first} to {end} are still there, and acknowledged"
                yield Violation("late", f"{name}/{partition}", text)
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
