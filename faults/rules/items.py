"""Items: every item that appears was added, and contents never change."""

from collections import Counter
from collections.abc import Iterator

from faults.facts import Facts, Violation


def phantom(facts: Facts) -> Iterator[Violation]:
    """An item that appears was added, or may have been by a call of unknown outcome."""
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
    """An item always appears with the contents that were added."""
    first: dict[str, str] = {item: origin.contents for item, origin in facts.origins.items()}
    for item, printed, call in facts.seen():
        if printed != first.setdefault(item, printed):
            calls = () if call is None else (call,)
            text = f"appears with {printed!r}, and is {first[item]!r}"
            yield Violation("contents", item, text, calls)
