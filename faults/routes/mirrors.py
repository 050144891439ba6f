"""The check of a topic against another one, which has every change of the same queues.

The sources of the other one were there before the first item, have no filter and tell the
difference; so it is the truth, which `events.py` and `calls.py` hold against the queue. Both topics
get their messages in one commit, the truth first: the event of a change is the next message about
it after that of the truth. `Term`s say when which source was there.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple
from zlib import crc32

from queueber.limits import ATTRIBUTES_BYTES_MAX, ATTRIBUTES_MAX

OWN = "queueber."
"""What names of the attributes of an event begin with, unless they are those of the item."""
_PAYLOAD = "payload"


class FoundMessage(NamedTuple):
    partition: int
    offset: int
    sequence: int
    key: str
    payload: bytes
    own: dict[str, str]
    """What the event says of itself, without the `queueber.` of the names."""
    attributes: dict[str, str]
    """Those of the item."""

    @property
    def item(self) -> tuple[str, str]:
        return self.own["queue"], self.own["id"]

    @property
    def place(self) -> tuple[str, str]:
        """Which source it comes from."""
        return self.own["queue"], self.own["op"]

    def __str__(self) -> str:
        own = self.own
        where = f"{self.partition}/{self.offset}, sequence {self.sequence}"
        return f"{own['change']!r} of item {own['id']} of {own['queue']!r} ({where})"


class Change(NamedTuple):
    event: FoundMessage
    """What the truth says of it."""
    born: dict[str, Any]
    """The item as it was added."""


@dataclass(frozen=True, slots=True)
class Way:
    """How changes are published."""

    payload: str
    matches: Callable[[Change], bool] = lambda _: True
    partition_text: Callable[[Change], str] = lambda change: change.event.key


@dataclass(frozen=True, slots=True)
class Term:
    """A source of the topic, and which sequences the messages of the truth have while it is there:
    none up to `began` or after `ended`, and surely those after `sure_from` up to `sure_to`."""

    queue: str
    on: str
    way: Way
    began: float = 0
    sure_from: float = 0
    sure_to: float = inf
    ended: float = inf


def check_mirror(
    topic: str,
    truth: Sequence[FoundMessage],
    found: Sequence[FoundMessage],
    partitions: int,
    terms: Sequence[Term],
) -> list[str]:
    """What is wrong. The topic may have been trimmed: then nothing is missed before its first."""
    born = {each.item: _born(each) for each in truth if each.own["change"] == "added"}
    changes = [Change(each, born.get(each.item, {})) for each in truth]
    by_place: dict[tuple[str, str], list[Term]] = defaultdict(list)
    for term in terms:
        by_place[term.queue, term.on].append(term)
    matched, wrong = _match(changes, found)
    for message, change in matched:
        wrong += _check(message, change, by_place[message.place], partitions)
    wrong += _missed(changes, found, matched, by_place)
    wrong += _out_of_order(matched)
    return [f"events of topic {topic!r}: {text}" for text in wrong]


Matched = list[tuple[FoundMessage, Change]]


def _match(changes: Sequence[Change], found: Sequence[FoundMessage]) -> tuple[Matched, list[str]]:
    """Each message with its change, the last ones first."""
    commit_ends = _commit_ends(changes, found)
    left: dict[tuple[str, ...], list[Change]] = defaultdict(list)
    for change in sorted(changes, key=lambda change: change.event.sequence):
        left[_named(change.event)].append(change)
    matched: Matched = []
    wrong = []
    for message in sorted(found, key=lambda message: -message.sequence):
        known = left[_named(message)]
        while known and known[-1].event.sequence > message.sequence:
            known.pop()
        if known and message.sequence < commit_ends[known[-1].event.sequence]:
            matched.append((message, known.pop()))
        else:
            wrong.append(f"{message} did not happen, or is told twice")
    return matched, wrong


def _commit_ends(changes: Sequence[Change], found: Sequence[FoundMessage]) -> dict[int, float]:
    """For each message of the truth, by sequence: where another commit has begun. Commits without a
    message that is found count as one with the next."""
    ends: dict[int, float] = {}
    next_begins, begins = inf, inf
    of_truth = {change.event.sequence for change in changes}
    for sequence in sorted({*of_truth, *(each.sequence for each in found)}, reverse=True):
        if sequence in of_truth:
            ends[sequence] = next_begins
            begins = sequence
        else:
            next_begins = min(next_begins, begins)
    return ends


def _named(message: FoundMessage) -> tuple[str, ...]:
    own = message.own
    return (*message.item, own["op"], own["change"], own["attempt"])


def _check(
    message: FoundMessage, change: Change, terms: Sequence[Term], partitions: int
) -> Iterator[str]:
    at = change.event.sequence
    ways = [term.way for term in terms if term.began < at <= term.ended]
    if not ways:
        yield f"{message} is told, but nobody asked for it then"
        return
    asked = [way for way in ways if way.matches(change)]
    if not asked:
        yield f"{message} is told, but its filter leaves it out"
    elif not any(_is_told_so(message, change, way) for way in asked):
        yield f"{message} has the payload {message.own[_PAYLOAD]} {message.payload[:99]!r}"
    elif not any(_partition(change, way, partitions) == message.partition for way in asked):
        yield f"{message} is in a partition of others"
    if message.key != change.event.key:
        yield f"{message} has the key {message.key!r}, not {change.event.key!r}"


def _partition(change: Change, way: Way, partitions: int) -> int:
    return crc32(way.partition_text(change).encode()) % partitions


def _is_told_so(message: FoundMessage, change: Change, way: Way) -> bool:
    """Whether payload and attributes are as they should be."""
    attributes = change.born.get("attributes") or {}
    payload = way.payload
    if payload == "full" and not _may_have(message, attributes):
        payload = "key"
    if message.own[_PAYLOAD] != payload:
        return False
    if payload == "full":
        contents = change.born.get("contents")
        is_same = contents is None or message.payload == contents.encode()
        return is_same and message.attributes == attributes
    if message.attributes:
        return False
    if payload == "diff":
        return message.payload == change.event.payload
    item_id = message.own["id"]
    named = {"id": item_id, "key": None if message.key == item_id else message.key}
    return bool(json.loads(message.payload) == named)


def _may_have(message: FoundMessage, attributes: dict[str, str]) -> bool:
    """Whether one message may have these and its own."""
    own = {f"{OWN}{name}": value for name, value in message.own.items()} | {f"{OWN}payload": "full"}
    joined = {**attributes, **own}
    size = sum(len(text.encode()) for pair in joined.items() for text in pair)
    return len(joined) <= ATTRIBUTES_MAX and size <= ATTRIBUTES_BYTES_MAX


def _missed(
    changes: Sequence[Change],
    found: Sequence[FoundMessage],
    matched: Matched,
    by_place: dict[tuple[str, str], list[Term]],
) -> Iterator[str]:
    first: dict[int, FoundMessage] = {}
    for message in found:
        first.setdefault(message.partition, message)
    since = max((each.sequence for each in first.values() if each.offset), default=0)
    told = {change.event.sequence for _, change in matched}
    for change in changes:
        at = change.event.sequence
        if at <= since or at in told:
            continue
        for term in by_place[change.event.place]:
            if term.sure_from < at <= term.sure_to and term.way.matches(change):
                yield f"{change.event} is not told, as {change.event.own['op']} was asked for"


def _out_of_order(matched: Matched) -> Iterator[str]:
    """The changes of one partition of the truth are in one order everywhere."""
    last: dict[tuple[int, int], Change] = {}
    for message, change in sorted(matched, key=lambda pair: (pair[0].partition, pair[0].offset)):
        place = message.partition, change.event.partition
        before = last.get(place)
        if before is not None and before.event.offset > change.event.offset:
            yield f"{message} comes after {before.event}, which happened later"
        last[place] = change


def _born(added: FoundMessage) -> dict[str, Any]:
    return {name: value for name, (_, value) in json.loads(added.payload).items()}
