"""Additions: what is sent again adds nothing, and the queue's totals fit what was done."""

from collections.abc import Iterator
from itertools import combinations
from typing import Any

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
            # They can lie no further apart than the begin of either and the end of the other.
            apart_ms = max(
                one.call.ended_ms - two.began_ms,
                two.call.ended_ms - one.began_ms,
            )
            if apart_ms < window_ms and not facts.is_step_within(since_ms, until_ms, forward=True):
                text = f"{item} and {other} were both added with it"
                yield Violation("key", key, text, (one.call, two.call))


def repeats(facts: Facts) -> Iterator[Violation]:
    """A producer that sends a call again gets the answer that it got, or would have got."""
    answers: dict[tuple[Any, ...], Call] = {}
    for call in facts.by_operation["add"]:
        ids = call.answer.get("ids")
        if not ids or not call.given("producer"):  # it was too long ago to know the ids
            continue
        turn = tuple(call.given("producer"))
        first = answers.setdefault(turn, call)
        if first.answer["ids"] != ids:
            text = "the same call was answered with other items"
            yield Violation("repeat", str(turn), text, (first, call))


def totals(facts: Facts) -> Iterator[Violation]:
    """The queue has counted what was acknowledged, and no more than was tried."""
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
