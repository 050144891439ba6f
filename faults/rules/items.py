"""Items: none is lost, none appears that nobody added, and contents never change."""

from collections import Counter
from collections.abc import Iterator

from faults.facts import Facts, Violation

_ALL_STATES = ("ready", "delayed", "in progress", "dead")


def lost(facts: Facts) -> Iterator[Violation]:
    """An item whose add was acknowledged is there at the end, unless it ended."""
    purges = facts.purges(*_ALL_STATES)
    missing = [
        (item, origin)
        for item, origin in facts.origins.items()
        if item not in facts.final.items and not any(facts.ends(item))
    ]
    # A purge says how many it took, and not which. One that may have happened could be all.
    room = sum(call.answer["count"] if call.is_ok else len(missing) for call in purges)
    for item, origin in missing:
        if not any(purge.ended_ms >= origin.began_ms for purge in purges):
            text = "was added, has not ended, and is not there at the end"
            yield Violation("lost", item, text, (origin.call,))
        elif room:
            room -= 1
        else:
            text = "was added, and more items are missing than were purged"
            yield Violation("lost", item, text, (origin.call, *purges))


def phantom(facts: Facts) -> Iterator[Violation]:
    """An item that appears was added, or may have been by a call whose answer was lost."""
    tried: Counter[str] = Counter()
    begins: dict[str, float] = {}
    for add in facts.unanswered:
        tried.update(add.given("contents"))
        for each in add.given("contents"):
            begins[each] = min(add.began_ms, begins.get(each, add.began_ms))
    seen: dict[str, str] = {}
    for item, printed, call in facts.seen():
        origin = facts.origins.get(item)
        began_ms = begins.get(printed) if origin is None else origin.began_ms
        calls = () if call is None else (call,)
        if began_ms is None:
            yield Violation("phantom", item, f"appears with {printed!r}, which nobody added", calls)
        elif call is not None and call.ended_ms < began_ms:
            yield Violation("phantom", item, "appears before it was added", calls)
        elif origin is None:
            seen[item] = printed
    for printed, count in Counter(seen.values()).items():
        if count > tried[printed]:
            text = f"as many items have these contents, which were sent {tried[printed]} times"
            yield Violation("phantom", printed, f"{count}: {text}")


def contents(facts: Facts) -> Iterator[Violation]:
    """An item has the contents that were added, whenever it appears."""
    first: dict[str, str] = {item: origin.contents for item, origin in facts.origins.items()}
    for item, printed, call in facts.seen():
        if printed != first.setdefault(item, printed):
            calls = () if call is None else (call,)
            text = f"appears with {printed!r}, and is {first[item]!r}"
            yield Violation("contents", item, text, calls)
