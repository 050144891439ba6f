"""Losses: an item that was certainly stored is in the final state, unless it ended, or may have
been dead for as long as its queue keeps dead letters."""

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
    """An item that was certainly stored."""

    item: str
    """Its id, or its contents if no answer had its id."""
    call: Call
    """The call whose answer proves it."""
    since_ms: float
    """A purge that ended before this time has not deleted it."""
    is_perhaps_completed: bool = False


def lost(facts: Facts) -> Iterator[Violation]:
    """An item that was certainly stored is in the final state, unless it ended.

    A complete of unknown outcome may have ended it, but then there is a result.
    """
    purges = facts.purges(*_ALL_STATES)
    missing = [*_missing_items(facts), *_missing_contents(facts)]
    purgeable = [
        any(purge.ended_ms >= each.since_ms for purge in purges) or _may_be_dropped(facts, each)
        for each in missing
    ]
    # A purge says how many items it deleted, not which. One of unknown outcome may explain all.
    room = sum(call.answer["count"] if call.is_ok else len(missing) for call in purges)
    room += facts.final.totals.get("dead_dropped", 0)
    room_of_results = spare(facts)
    # Items that no purge explains come first, so that deleted results explain as many as possible.
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
            text = "was added, and more items are missing than were purged or dropped"
            yield Violation("lost", known.item, text, (known.call, *purges))


def _may_be_dropped(facts: Facts, known: _Known) -> bool:
    """Whether it may have been dead for as long as the queue keeps dead letters: it certainly lived
    when it was added, and whenever a poll gave it."""
    final = facts.final
    if not final.dead_age_ms:
        return False
    holds = facts.holds.get(known.item, ())
    lived_ms = max([known.since_ms, *(hold.poll.began_ms for hold in holds)])
    if lived_ms + final.dead_age_ms - facts.slack_ms <= final.read_at_ms:
        return True
    return facts.is_step_within(lived_ms, final.read_at_ms, forward=True)


def _missing_items(facts: Facts) -> Iterator[_Known]:
    completed = shown(facts)
    for item, (call, since_ms) in _known(facts).items():
        if item in facts.final.items or item in completed:
            continue
        ends = list(facts.ends(item))
        if all(end.is_done is None and end.call.operation == "complete" for end in ends):
            yield _Known(item, call, since_ms, is_perhaps_completed=bool(ends))


def _known(facts: Facts) -> dict[str, tuple[Call, float]]:
    """Items that were certainly stored, each with the call that proves it and since when."""
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
    """Contents of items that a producer stored, if the answer had no ids."""
    seen = Counter(
        {item: contents for item, contents, _ in facts.seen() if item not in facts.origins}.values()
    )
    # An item that ended under an id that no answer had may have any contents.
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
