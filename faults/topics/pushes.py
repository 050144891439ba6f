"""Messages that an ordered group gets pushed: in order, without gaps, and each once.

A subscription gets a message twice only if the server was started again between, and one that
begins after an acknowledgement gets nothing that was acknowledged, unless it seeks: then it begins
with the earliest message.
"""

from collections import defaultdict
from collections.abc import Iterator

from faults.facts import Violation
from faults.history import Call
from faults.topics.facts import TopicFacts

Place = tuple[str, str, int]
"""Topic, group and partition."""


def pushed(facts: TopicFacts) -> Iterator[Violation]:
    began = {
        call.arguments["subscription"]: call.began_ms for call in facts.by_operation["subscribe"]
    }
    seeking = {
        call.arguments["subscription"]
        for call in facts.by_operation["subscribe"]
        if call.arguments.get("seeks")
    }
    acks: dict[Place, list[Call]] = defaultdict(list)
    for call in facts.by_operation["ack"]:
        acks[_place(call)].append(call)
    streams: dict[tuple[Place, str], list[Call]] = defaultdict(list)
    for call in sorted(facts.by_operation["pushed"], key=lambda call: call.began_ms):
        if call.is_ok:
            streams[_place(call), call.arguments["subscription"]].append(call)
    for (place, subscription), calls in streams.items():
        yield from _in_order(facts, place, calls)
        if subscription in seeking:
            yield from _begins_at_the_beginning(place, calls[0])
        else:
            yield from _begins_at_the_cursor(place, calls[0], acks[place], began[subscription])


def _place(call: Call) -> Place:
    return call.arguments["topic"], call.arguments["group"], call.arguments["partition"]


def _offset(call: Call) -> int:
    offset: int = call.answer["messages"][0][0]
    return offset


def _in_order(facts: TopicFacts, place: Place, calls: list[Call]) -> Iterator[Violation]:
    """Each message follows the one before it, unless the server was started again."""
    first: dict[int, Call] = {}
    last: Call | None = None
    for call in calls:
        before = first.setdefault(_offset(call), call)
        if before is not call and not _is_restarted(facts, before, call):
            text = f"offset {_offset(call)} was pushed twice"
            yield Violation("pushed", str(place), text, (before, call))
        is_next = last is None or _offset(call) == _offset(last) + 1
        if last is not None and not is_next and not _is_restarted(facts, last, call):
            text = f"offset {_offset(call)} was pushed after {_offset(last)}"
            yield Violation("pushed", str(place), text, (last, call))
        last = call


def _is_restarted(facts: TopicFacts, since: Call, until: Call) -> bool:
    return any(
        restart.ended_ms >= since.began_ms and restart.began_ms <= until.ended_ms
        for restart in facts.restarts
    )


def _begins_at_the_cursor(
    place: Place, first: Call, acks: list[Call], began_ms: float
) -> Iterator[Violation]:
    """Neither before what was acknowledged, nor after what anybody asked for."""
    offset = _offset(first)
    asked = [ack.arguments["offset"] for ack in acks if ack.began_ms <= first.ended_ms]
    if offset > max(asked, default=0):
        text = f"begins at {offset}, and nobody has acknowledged more than {max(asked, default=0)}"
        yield Violation("pushed", str(place), text, (first,))
    for ack in acks:
        if ack.is_ok and ack.ended_ms < began_ms and ack.answer["cursor"] > offset:
            text = f"offset {offset} was acknowledged, and is pushed again"
            yield Violation("pushed", str(place), text, (ack, first))


def _begins_at_the_beginning(place: Place, first: Call) -> Iterator[Violation]:
    if _offset(first) != 0:
        text = f"begins at {_offset(first)}, and it sought the earliest message"
        yield Violation("pushed", str(place), text, (first,))


def taken_over(facts: TopicFacts) -> Iterator[Violation]:
    """Once another one has subscribed, no acknowledgement of a subscription is taken."""
    begun = {
        call.arguments["subscription"]: call
        for call in facts.by_operation["subscribe"]
        if call.is_ok
    }
    for ack in facts.by_operation["ack"]:
        own = begun.get(ack.arguments.get("subscription", ""))
        if own is None or not ack.is_ok:
            continue
        for other in begun.values():
            is_later = own.ended_ms < other.began_ms and other.ended_ms < ack.began_ms
            if is_later and other.arguments["group"] == own.arguments["group"]:
                text = f"acknowledged {ack.arguments['offset']} after another one had taken over"
                yield Violation("taken over", ack.arguments["subscription"], text, (other, ack))
                break


def moved(
    facts: TopicFacts, source: str, group: str, found: dict[str, list[str]]
) -> Iterator[Violation]:
    """Each of some places has every message once that a group has acknowledged, and no other."""
    wanted = [
        message[1]
        for partition, log in enumerate(facts.final.topics[source].partitions)
        for message in log.messages
        if message[0] < facts.final.cursors[source, group, partition]
    ]
    for name, contents in found.items():
        if sorted(contents) != sorted(wanted):
            missing = sorted(set(wanted) - set(contents))[:5]
            more = sorted(set(contents) - set(wanted))[:5]
            twice = sorted({each for each in contents if contents.count(each) > 1})[:5]
            text = (
                f"{len(wanted)} were acknowledged, and {len(contents)} are there: {missing} are "
                f"missing, {more} are more, {twice} are there twice"
            )
            yield Violation("moved", name, text)
