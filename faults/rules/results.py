"""Results: each completed item has one, at an offset that never changes."""

from collections.abc import Container, Iterator

from faults.facts import Facts, Violation
from faults.history import Call

Reading = tuple[int, str, str, Call | None]
"""Offset, item and result, from a call or the final state."""


def results(facts: Facts) -> Iterator[Violation]:
    """An item has one result, an offset one item, and each acknowledged complete its result."""
    by_offset: dict[int, Reading] = {}
    by_item: dict[str, Reading] = {}
    for reading in _readings(facts):
        offset, item, _, call = reading
        for known in (by_offset.setdefault(offset, reading), by_item.setdefault(item, reading)):
            if known[:3] != reading[:3]:
                calls = tuple(each for each in (known[3], call) if each is not None)
                text = f"{reading[:3]} and {known[:3]} are both results"
                yield Violation("results", item, text, calls)
        if item in facts.final.items:
            yield Violation("results", item, "has a result, and is there at the end")
    room = _deleted_unseen(facts, by_offset)
    for item, all_named in facts.named["complete"].items():
        for named in all_named:
            if not named.is_done:
                continue
            if item in by_item:
                if by_item[item][2] != named.detail:
                    text = f"has the result {by_item[item][2]!r}, not the one it was completed with"
                    yield Violation("results", item, text, (named.call,))
            elif room:
                room -= 1
            else:
                yield Violation("results", item, "was completed, and has no result", (named.call,))


def shown(facts: Facts) -> set[str]:
    """The items whose results a read has returned."""
    return {item for _, item, _, _ in _readings(facts)}


def spare(facts: Facts) -> int:
    """How many results of unacknowledged completes may have been deleted unread."""
    seen = shown(facts)
    owed = sum(
        item not in seen and any(named.is_done for named in all_named)
        for item, all_named in facts.named["complete"].items()
    )
    return max(0, _deleted_unseen(facts, {offset for offset, _, _, _ in _readings(facts)}) - owed)


def _deleted_unseen(facts: Facts, seen: Container[int]) -> int:
    """These may be of any item."""
    return sum(offset not in seen for offset in range(facts.final.first_offset))


def result_of_nobody(facts: Facts) -> Iterator[Violation]:
    """A result was sent by a complete that happened, or may have happened."""
    for _, item, result, call in _readings(facts):
        given = [n for n in facts.named["complete"].get(item, ()) if n.may_be_done]
        if not any(named.detail == result for named in given):
            calls = () if call is None else (call,)
            yield Violation("result of nobody", item, f"has {result!r}, which nobody gave", calls)
        for operation in ("remove", "cancel"):
            for named in facts.named[operation].get(item, ()):
                if named.is_done:
                    text = f"has a result, and {operation} was acknowledged"
                    yield Violation("result of nobody", item, text, (named.call,))


def _readings(facts: Facts) -> Iterator[Reading]:
    for call in facts.by_operation["read_results"]:
        for offset, item, result in call.answer.get("results", ()):
            yield offset, item, result, call
    for found in facts.final.results:
        yield found.offset, found.id, found.result, None
