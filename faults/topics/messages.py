"""Messages: what was acknowledged or read stays as it was, and nothing comes twice."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from faults.facts import Violation
from faults.history import Call
from faults.topics.facts import Place, Seen, TopicFacts


def stable(facts: TopicFacts) -> Iterator[Violation]:
    """A message is the same whoever reads it, however often, and as it was published."""
    first: dict[Place, Seen] = {}
    ids: dict[str, Place] = {}
    for seen in facts.seen:
        if seen.place[0] in facts.gone:
            continue
        known = first.setdefault(seen.place, seen)
        if known.message != seen.message:
            yield _wrong("stable", seen, f"was {known.message} before, and is {seen.message}")
        topic = facts.forks.get(seen.place[0])
        if topic is None and ids.setdefault(seen.message[3], seen.place) != seen.place:
            yield _wrong("stable", seen, f"has the id of {ids[seen.message[3]]}")
    for sent in facts.sent:
        found = first.get(sent.place)
        if found is None or sent.id == "0" * 32:
            continue
        _, contents, key, message_id, sequence, _ = found.message
        given = (sent.contents, sent.key) if sent.is_new else (contents, key)
        if (*given, sent.id, sent.sequence) != (contents, key, message_id, sequence):
            text = f"was published as {sent}, and is {found.message}"
            yield Violation("stable", str(sent.place), text, (sent.call,))


def lost(facts: TopicFacts) -> Iterator[Violation]:
    """What was acknowledged or read is there at the end, unless something deleted it."""
    for name, topic in facts.topics().items():
        kept = {
            (name, partition, message[0])
            for partition, found in enumerate(topic.partitions)
            for message in found.messages
        }
        wanted = [(sent.place, sent.key, sent.call) for sent in facts.sent if sent.id != "0" * 32]
        wanted += [(s.place, s.message[2], s.call) for s in facts.seen if s.call is not None]
        for place, key, call in wanted:
            if place[0] != name or place in kept:
                continue
            partition = topic.partitions[place[1]]
            if place[2] >= partition.end:
                yield Violation("message lost", str(place), "is behind the end", (call,))
            elif topic.keeps_last:
                if not _may_be_replaced(facts, place, key):
                    text = "is gone, and was the last of its key"
                    yield Violation("message lost", str(place), text, (call,))
            elif place[2] >= partition.first:
                yield Violation("message lost", str(place), "is missing in the log", (call,))


def _may_be_replaced(facts: TopicFacts, place: Place, key: str) -> bool:
    if not key:
        return False
    later = [
        seen
        for seen in facts.seen
        if seen.place[:2] == place[:2] and seen.place[2] >= place[2] and seen.message[2] == key
    ]
    sent = [
        each
        for each in facts.sent
        if each.place[:2] == place[:2] and each.place[2] >= place[2] and each.key == key
    ]
    is_tombstone = any(not seen.message[1] for seen in later) or any(not s.contents for s in sent)
    is_unknown = any(
        not call.is_ok and key in publication["keys"]
        for call in facts.by_operation["publish"]
        for publication in call.given("publications")
        if publication["topic"] == place[0]
    )
    places = [each.place[2] for each in later] + [each.place[2] for each in sent]
    return is_tombstone or is_unknown or max(places, default=place[2]) > place[2]


def deleted_early(facts: TopicFacts) -> Iterator[Violation]:
    """A topic without limits begins where somebody trimmed it to, and not later."""
    for name, topic in facts.topics().items():
        if topic.is_limited:
            continue
        for partition, found in enumerate(topic.partitions):
            trims = [
                call.arguments["offset"]
                for call in facts.by_operation["trim"]
                if (call.arguments["topic"], call.arguments["partition"]) == (name, partition)
            ]
            if name in facts.forks:
                trims.append(found.end)
            if topic.block_messages:
                acks = facts.by_operation["ack"]
                trims += [
                    call.arguments["offset"]
                    for call in acks
                    if (call.arguments["topic"], call.arguments["partition"]) == (name, partition)
                ]
            if found.first > max(trims, default=0):
                text = f"begins at {found.first}, and was trimmed to {max(trims, default=0)}"
                yield Violation("deleted early", f"{name}/{partition}", text)


def gaps(facts: TopicFacts) -> Iterator[Violation]:
    """Reads give all offsets, from where they begin on."""
    for name, topic in facts.topics().items():
        for partition, found in enumerate(topic.partitions):
            offsets = [message[0] for message in found.messages]
            if not topic.keeps_last and offsets != list(range(found.first, found.end)):
                text = f"has {offsets} of {found.first} to {found.end}"
                yield Violation("gap", f"{name}/{partition}", text)
            for call in facts.reads_of(name, partition):
                offsets = [message[0] for message in call.answer["messages"]]
                is_gapless = all(b == a + 1 for a, b in pairwise(offsets))
                is_whole = topic.keeps_last or (is_gapless and _begins_right(call, offsets))
                if offsets != sorted(set(offsets)) or not is_whole:
                    yield Violation("gap", f"{name}/{partition}", f"{offsets} were read", (call,))


def _begins_right(read: Call, offsets: Sequence[int]) -> bool:
    """Whether the first message is the one that the read asked for."""
    if not offsets or read.arguments["start"] != "offset":
        return True
    start: int = read.arguments["value"]
    if read.arguments["moves"] and offsets[0] < start:
        return True  # it was moved back to the end
    is_asked: bool = offsets[0] == max(start, read.answer["first"])
    return is_asked


def visible(facts: TopicFacts) -> Iterator[Violation]:
    """What was acknowledged, or read, before a read began is before the end that it tells."""
    known: dict[tuple[str, int], list[tuple[float, int, Call]]] = defaultdict(list)
    for sent in facts.sent:
        known[sent.place[:2]].append((sent.call.ended_ms, sent.place[2] + 1, sent.call))
    for name, topic in facts.topics().items():
        for partition in range(len(topic.partitions)):
            reads = facts.reads_of(name, partition)
            ends = known[name, partition]
            ends += [(call.ended_ms, call.answer["end"], call) for call in reads]
            ends.sort(key=lambda each: each[0])
            at, last = 0, (0.0, 0, reads[0] if reads else None)
            for read in sorted(reads, key=lambda read: read.began_ms):
                while ends[at][0] <= read.began_ms:
                    last, at = max(last, ends[at], key=lambda each: each[1]), at + 1
                if read.answer["end"] < last[1] and last[2] is not None:
                    text = f"ends at {read.answer['end']}, and had ended at {last[1]}"
                    yield Violation("visible", f"{name}/{partition}", text, (last[2], read))


def phantom(facts: TopicFacts) -> Iterator[Violation]:
    """Every message was published to its topic, or to the one that it is a fork of, and once."""
    for name in facts.topics():
        places: dict[str, Place] = {}
        for seen in facts.seen:
            contents = seen.message[1]
            if seen.place[0] != name or not contents:
                continue
            is_known = places.setdefault(contents, seen.place) == seen.place
            if not is_known and not _is_cut(facts, name, seen.place):
                yield _wrong("published twice", seen, f"is also at {places[contents]}")
            if not _was_published(facts, name, seen.place, contents):
                yield _wrong("phantom", seen, f"{contents!r} was published by nobody")


def _is_cut(facts: TopicFacts, name: str, place: Place) -> bool:
    """Whether a fork, or one of its ancestors, began there with a part of a message."""
    fork = facts.forks.get(name)
    if fork is None:
        return False
    is_there = place[1:] == (fork.arguments["partition"], fork.arguments["offset"])
    is_own = is_there and bool(fork.arguments["cut_bytes"])
    return is_own or _is_cut(facts, fork.arguments["topic"], place)


def _was_published(facts: TopicFacts, name: str, place: Place, contents: str) -> bool:
    """Whether somebody published it to the topic, or to an ancestor before it was forked."""
    if contents in facts.tried[name]:
        return True
    fork = facts.forks.get(name)
    if fork is None:
        return False
    source, size = fork.arguments["topic"], fork.arguments["cut_bytes"]
    if place[1] == fork.arguments["partition"] and place[2] >= fork.arguments["offset"]:
        is_begin = place[2] == fork.arguments["offset"]
        return is_begin and any(each[:size] == contents for each in _all_tried(facts, source))
    return _was_published(facts, source, place, contents)


def _all_tried(facts: TopicFacts, name: str) -> Iterator[str]:
    """What was published to a topic and its ancestors, and the parts that forks begin with."""
    yield from facts.tried[name]
    fork = facts.forks.get(name)
    if fork is not None:
        for each in _all_tried(facts, fork.arguments["topic"]):
            yield each
            yield each[: fork.arguments["cut_bytes"]]


def _wrong(rule: str, seen: Seen, text: str) -> Violation:
    return Violation(rule, str(seen.place), text, () if seen.call is None else (seen.call,))
