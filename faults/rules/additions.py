"""Additions: a repeated add stores nothing, and the queue's totals match the calls."""

from collections.abc import Iterator
from itertools import combinations

from faults.facts import Facts, Origin, Violation
from faults.history import Call


def keys(facts: Facts) -> Iterator[Violation]:
    """Within the window, a key stands for one item."""
    window_ms = facts.final.dedup_window_ms - facts.slack_ms
    stored: dict[str, list[tuple[str, Origin]]] = {}
    for item, origin in facts.origins.items():
        if origin.key:
            stored.setdefault(origin.key, []).append((item, origin))
    for key, adds in stored.items():
        for (item, one), (other, two) in combinations(adds, 2):
            since_ms = min(one.began_ms, two.began_ms)
            until_ms = max(one.call.ended_ms, two.call.ended_ms)
            # The longest time between them is from the begin of one to the end of the other.
            apart_ms = max(
                one.call.ended_ms - two.began_ms,
                two.call.ended_ms - one.began_ms,
            )
            if apart_ms < window_ms and not facts.is_step_within(since_ms, until_ms, forward=True):
                text = f"{item} and {other} were both added with it"
                yield Violation("key", key, text, (one.call, two.call))


def duplicates(facts: Facts) -> Iterator[Violation]:
    """The answer for a duplicate names an item that was, or may have been, added with its key."""
    for call, item, key in ((each.call, each.item, each.key) for each in facts.duplicates):
        origin = facts.origins.get(item)
        if origin is None:
            is_right = bool(facts.unanswered_of_key(key, call.ended_ms))
        else:
            is_right = origin.key == key and origin.began_ms <= call.ended_ms
        if not is_right:
            text = f"a duplicate has its id, but no add stored it with the key {key!r}"
            yield Violation("duplicate", item, text, (call,))


def repeats(facts: Facts) -> Iterator[Violation]:
    """A producer that repeats a call gets the answer of the first call."""
    for turn, attempts in facts.attempts.items():
        answered = [call for call in attempts if call.answer.get("ids")]
        for call in answered[1:]:
            if call.answer["ids"] != answered[0].answer["ids"]:
                text = "the same call was answered with other items"
                yield Violation("repeat", str(turn), text, (answered[0], call))
        stored = [call for call in attempts if not is_without_ids(call)]
        for call in attempts:
            is_first = not any(each.began_ms <= call.ended_ms for each in stored)
            if is_without_ids(call) and is_first:
                text = "was answered as one that had come before, and had not"
                yield Violation("repeat", str(turn), text, (call,))


def is_without_ids(add: Call) -> bool:
    """Whether it was answered as a repeat of a call whose ids are forgotten."""
    return add.is_ok and bool(add.given("contents")) and not add.answer.get("ids")


def totals(facts: Facts) -> Iterator[Violation]:
    """The queue's totals are at least what was acknowledged, and at most what was tried."""
    known = set(facts.origins) | set(facts.holds) | set(facts.final.items)
    tried = sum(len(call.given("contents")) for call in facts.unanswered)
    yield from _within(facts, "added", len(known), len(facts.origins) + tried)
    for operation, total in (("remove", "removed"), ("complete", "completed")):
        yield from _within(facts, total, *_counted(facts, operation))
    least, most = _counted(facts, "cancel")
    for purge in facts.by_operation["purge"]:
        least += purge.answer.get("count", 0)
        most += purge.answer["count"] if purge.is_ok else len(known) + tried
    yield from _within(facts, "cancelled", least, most)


def _counted(facts: Facts, operation: str) -> tuple[int, int]:
    named = [named for of_item in facts.named[operation].values() for named in of_item]
    return sum(bool(each.is_done) for each in named), sum(each.may_be_done for each in named)


def _within(facts: Facts, total: str, least: int, most: int) -> Iterator[Violation]:
    found = facts.final.totals.get(total)
    if found is not None and not least <= found <= most:
        yield Violation("totals", total, f"{found} at the end, but it is {least} to {most}")
