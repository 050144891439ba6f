"""The check of events against the queue that they tell of, at the end of a history.

The queue was routed from its first item on, for all kinds of changes and with the difference as the
payload. Its totals are exact, so they say how many events of each kind there must be. The events of
one item must be a life that an item can have: each begins in the state, and in the attempt, that
the one before it left, but for what has no events (polls, and delays that end). And what is left in
the queue must be what the last events say.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from queueber.engine.queue.expire import DISCONNECTED, RAN_OUT

_NEXT = {
    "ready": {"ready", "leased"},
    "delayed": {"delayed", "ready", "leased"},
    "dead": {"dead"},
    "gone": set[str](),
}
"""The states in which an item may be when the next event comes, or at the end."""


@dataclass(frozen=True, slots=True)
class FoundEvent:
    queue: str
    change: str
    id: str
    attempt: int
    was: str | None
    now: str
    counts_attempt: bool
    error: str | None


def check_events(
    queue: str, events: Sequence[FoundEvent], totals: Mapping[str, int], items: Mapping[str, str]
) -> list[str]:
    """What is wrong. `totals` are those of the queue's statistics; `items` has the state of each
    item that is left."""
    wrong = list(_check_totals(events, totals))
    lives: dict[str, list[FoundEvent]] = defaultdict(list)
    for event in events:
        lives[event.id].append(event)
    for item, life in lives.items():
        wrong += [f"item {item}: {text}" for text in _check_life(life, items.get(item, "gone"))]
    wrong += [f"item {each}: is there without an event" for each in items if each not in lives]
    return [f"events of {queue!r}: {text}" for text in wrong]


def _check_totals(events: Sequence[FoundEvent], totals: Mapping[str, int]) -> Iterator[str]:
    words = Counter(each.change for each in events)
    found = {
        "added": words["added"],
        "removed": words["removed"],
        "completed": words["completed"],
        "released": words["released"],
        "redriven": words["redriven"],
        "died": words["dead"],
        "cancelled": words["cancelled"] + words["purged"],
        "failed": sum(each.counts_attempt and each.change != "redriven" for each in events),
        "expired": sum(each.error in (RAN_OUT, DISCONNECTED) for each in events),
    }
    happened = {**totals, "cancelled": totals["cancelled"] + totals.get("dead_dropped", 0)}
    for total, count in found.items():
        if count != happened[total]:
            yield f"{count} say {total}, but that happened {happened[total]} times"


def _check_life(life: Sequence[FoundEvent], left: str) -> Iterator[str]:
    first, attempt = life[0], 1
    if first.change != "added":
        yield f"its first event is {first.change!r}"
        return
    state = first.now
    for event in life[1:]:
        if event.was not in _NEXT[state]:
            yield f"{event.change!r} from {event.was!r}, but it was {state!r}"
        if event.attempt != attempt:
            yield f"{event.change!r} at attempt {event.attempt}, but {attempt} attempts were due"
        if event.change == "redriven":
            attempt = 1
        elif event.counts_attempt:
            attempt += 1
        state = event.now
    if left != state and left not in _NEXT[state]:
        yield f"its last event leaves it {state!r}, but it is {left!r}"
