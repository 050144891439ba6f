"""The check of events against the calls that made them, item by item.

`events.py` holds them against totals, and against what a life can be. That a change is told of the
item that a caller named, in the word for what the caller did, and after what was done to the item
before, only the calls can show.

A call of unknown outcome may have an event or not. The server releases by itself what nobody heard
of, such as the answer to a poll that was given up: a release may be nobody's call.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from faults.facts import Facts, Named
from faults.history import Call
from faults.routes.events import FoundEvent
from queueber.engine.queue.expire import DISCONNECTED, RAN_OUT
from queueber.engine.queue.let_go import CAME_AFTER
from queueber.engine.queue.lifecycle import DeathReason

_OPERATIONS = {
    "removed": "remove", "completed": "complete", "released": "release", "cancelled": "cancel",
    "rescheduled": "reschedule",
}  # fmt: skip
_OF_FAILURES = {"failed": "retried", "dead": "died"}
"""The words for what a fail may be answered with."""
_OF_MANY = {"purged": "purge", "redriven": "redrive"}
"""Calls that do not name items, but say how many there were."""
_WITHOUT_A_CALL = {"released"}
_BY_TIME = (RAN_OUT, DISCONNECTED, DeathReason.UNCLAIMED.text(0))
"""The errors of changes that no call made."""


def check_calls(queue: str, events: Sequence[FoundEvent], facts: Facts) -> list[str]:
    """What is wrong with the events of a queue, whose calls are in `facts`."""
    words: dict[str, Counter[str]] = defaultdict(Counter)
    order: dict[str, list[str]] = defaultdict(list)
    for event in events:
        if event.error is not None and event.error.startswith(CAME_AFTER):
            continue  # nobody's call: something that it waited for is dead
        order[event.id].append(event.change)
        if event.error not in _BY_TIME:
            words[event.change][event.id] += 1
    wrong = [
        *_check_added(words["added"], facts),
        *_check_named(words, facts),
        *_check_failures(words, facts),
        *_check_many(words, facts),
        *_check_order(order, facts),
    ]
    return [f"events of {queue!r}: {text}" for text in wrong]


def _check_added(found: Counter[str], facts: Facts) -> Iterator[str]:
    for item in facts.origins:
        if found[item] != 1:
            yield f"item {item}: {found[item]} say that it was added, which it was once"


def _check_named(words: dict[str, Counter[str]], facts: Facts) -> Iterator[str]:
    for word, operation in _OPERATIONS.items():
        found, named = words[word], facts.named[operation]
        for item in {*found, *named}:
            calls = named.get(item, ())
            least = sum(each.is_done is True and not _may_be_idle(each) for each in calls)
            most = sum(each.may_be_done for each in calls)
            if word == "cancelled" and any(map(_is_cancel, facts.by_operation["purge"])):
                most += 1  # such a call says how many items it cancelled, not which
            yield from _counted(item, word, found[item], least, most)


def _may_be_idle(named: Named) -> bool:
    """Whether it may have found the item as it was to be: ready, and to be ready now."""
    return named.call.operation == "reschedule" and not named.detail


def _is_cancel(purge: Call) -> bool:
    """Whether it is a call that cancelled items by their batch or key: to other rules a purge."""
    return bool(purge.arguments.get("batch") or purge.arguments.get("key"))


def _check_failures(words: dict[str, Counter[str]], facts: Facts) -> Iterator[str]:
    for word, outcome in _OF_FAILURES.items():
        found, named = words[word], facts.named["fail"]
        for item in {*found, *named}:
            calls = named.get(item, ())
            least = sum(each.is_done is True and each.detail[1] == outcome for each in calls)
            most = sum(each.is_done is None or each.detail[1] == outcome for each in calls)
            yield from _counted(item, word, found[item], least, most)


def _counted(item: str, word: str, found: int, least: int, most: int) -> Iterator[str]:
    if found < least:
        yield f"item {item}: {found} say {word!r}, but that many calls did it: {least}"
    elif found > most and word not in _WITHOUT_A_CALL:
        yield f"item {item}: {found} say {word!r}, but no more calls may have done it than {most}"


def _check_many(words: dict[str, Counter[str]], facts: Facts) -> Iterator[str]:
    for word, operation in _OF_MANY.items():
        calls = [each for each in facts.by_operation[operation] if not _is_cancel(each)]
        found = words[word].total()
        told = sum(each.answer["count"] for each in calls if each.is_ok)
        if word == "purged":  # so is the end of those that were dead for too long
            told += facts.final.totals.get("dead_dropped", 0)
        is_exact = all(each.is_ok and not facts.may_be_a_repeat(each) for each in calls)
        if found < told or (found > told and is_exact):
            yield f"{found} say {word!r}, but the calls were told of {told}"


def _check_order(order: dict[str, list[str]], facts: Facts) -> Iterator[str]:
    """What was done to an item by one call after the other is told in that order."""
    done: dict[str, list[tuple[Named, str]]] = defaultdict(list)
    for word, operation in _OPERATIONS.items():
        for item, calls in facts.named[operation].items():
            done[item] += [
                (each, word) for each in calls if each.is_done and not _may_be_idle(each)
            ]
    for item, calls in facts.named["fail"].items():
        of_outcome = {outcome: word for word, outcome in _OF_FAILURES.items()}
        done[item] += [(each, of_outcome[each.detail[1]]) for each in calls if each.is_done]
    for item, named in done.items():
        named.sort(key=lambda each: each[0].call.began_ms)
        if any(a.call.ended_ms >= b.call.began_ms for (a, _), (b, _) in pairwise(named)):
            continue
        left = iter(order[item])
        if not all(word in left for _, word in named):
            wanted = ", ".join(word for _, word in named)
            yield f"item {item}: was {wanted}, and its events are {', '.join(order[item])}"
