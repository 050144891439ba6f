"""Additions: what is sent again adds nothing, and the queue's totals fit what was done."""

from collections.abc import Iterator
from typing import Any

from faults.facts import Facts, Violation
from faults.history import Call


def keys(facts: Facts) -> Iterator[Violation]:
    """Within the window, a key stands for one item."""
    window_ms = facts.final.dedup_window_ms - facts.slack_ms
    stored: dict[str, list[tuple[str, Call]]] = {}
    for call in facts.by_operation["add"]:
        duplicates = call.answer.get("duplicates") or [False] * len(call.answer.get("ids", ()))
        for item, key, is_duplicate in zip(
            call.answer.get("ids", ()), call.given("keys"), duplicates, strict=False
        ):
            if key and not is_duplicate:
                stored.setdefault(key, []).append((item, call))
    for key, adds in stored.items():
        for at, (item, first) in enumerate(adds):
            for other, second in adds[at + 1 :]:
                early, late = sorted((first, second), key=lambda call: call.began_ms)
                is_within = late.ended_ms < early.began_ms + window_ms
                if item == other or not is_within:
                    continue
                if not facts.is_step_within(early.began_ms, late.ended_ms, forward=True):
                    text = f"{item} and {other} were both added with it"
                    yield Violation("key", key, text, (early, late))


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
    adds = facts.by_operation["add"]
    known = set(facts.origins) | set(facts.holds) | set(facts.final.items)
    tried = sum(len(call.given("contents")) for call in adds if not call.is_ok)
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
