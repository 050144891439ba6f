"""Losses: what was there for certain is there at the end, unless it has ended."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from faults.facts import ENDINGS, Facts, Violation
from faults.history import Call
from faults.rules.additions import is_without_ids
from faults.rules.results import shown, spare

_ALL_STATES = ("ready", "delayed", "leased", "dead")


@dataclass(frozen=True, slots=True)
class _Known:
    """An item that was there for certain."""

    item: str
    """Or its contents, when nobody was told its id."""
    call: Call
    """The one whose answer proves it."""
    since_ms: float
    """A purge that was over before has not taken it."""
    is_perhaps_completed: bool = False


def lost(facts: Facts) -> Iterator[Violation]:
    """An item that was there for certain is there at the end, unless it ended.

    A complete of unknown outcome may have ended it, but then it has left a result.
    """
    purges = facts.purges(*_ALL_STATES)
    missing = [*_missing_items(facts), *_missing_contents(facts)]
    purgeable = [any(purge.ended_ms >= each.since_ms for purge in purges) for each in missing]
    # A purge says how many it took, and not which. One that may have happened could be all.
    room = sum(call.answer["count"] if call.is_ok else len(missing) for call in purges)
    room_of_results = spare(facts)
    # Those that no purge explains come first, so that results that are gone explain most.
    for is_purgeable, known in sorted(zip(purgeable, missing, strict=True), key=lambda e: e[0]):
        if known.is_perhaps_completed and room_of_results:
            room_of_results -= 1
        elif not is_purgeable:
            how = "has no result" if known.is_perhaps_completed else "has not ended"
            text = f"was added, {how}, and is not there at the end"
            yield Violation("lost", known.item, text, (known.call,))
        elif room:
            room -= 1
        else:
            text = "was added, and more items are missing than were purged"
            yield Violation("lost", known.item, text, (known.call, *purges))


def _missing_items(facts: Facts) -> Iterator[_Known]:
    completed = shown(facts)
    for item, (call, since_ms) in _known(facts).items():
        if item in facts.final.items or item in completed:
            continue
        ends = list(facts.ends(item))
        if all(end.is_done is None and end.call.operation == "complete" for end in ends):
            yield _Known(item, call, since_ms, is_perhaps_completed=bool(ends))


def _known(facts: Facts) -> dict[str, tuple[Call, float]]:
    """Items that were there for certain, each with a call that was told so and since when."""
    known = {item: (origin.call, origin.began_ms) for item, origin in facts.origins.items()}
    for duplicate in facts.duplicates:
        if adds := facts.unanswered_of_key(duplicate.key, duplicate.call.ended_ms):
            known.setdefault(duplicate.item, (duplicate.call, adds[0].began_ms))
    tried = {contents for add in facts.unanswered for contents in add.given("contents")}
    for item, holds in facts.holds.items():
        if holds[0].contents in tried:  # else it is a phantom
            known.setdefault(item, (holds[-1].poll, holds[-1].poll.began_ms))
    return known


def _missing_contents(facts: Facts) -> Iterator[_Known]:
    """Of items that a producer was told are stored, when nobody remembered their ids."""
    seen = Counter(
        {item: contents for item, contents, _ in facts.seen() if item not in facts.origins}.values()
    )
    # One that ended by a name that nobody was seen to be told may have any contents.
    strangers = _strangers(facts)
    for attempts in facts.attempts.values():
        repeats = [call for call in attempts if is_without_ids(call)]
        if not repeats or any(call.answer.get("ids") for call in attempts):
            continue
        first, keys = attempts[0], attempts[0].given("keys")
        for at, contents in enumerate(first.given("contents")):
            if keys and keys[at]:  # it may have been a duplicate
                continue
            if seen[contents]:
                seen[contents] -= 1
            elif strangers:
                strangers -= 1
            else:
                yield _Known(contents, repeats[0], first.began_ms)


def _strangers(facts: Facts) -> int:
    known = facts.origins.keys() | facts.holds.keys()
    named = {item for operation in ENDINGS for item in facts.named[operation]}
    return sum(any(facts.ends(item)) for item in named - known)
