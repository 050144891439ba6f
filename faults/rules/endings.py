"""Endings: an item ends once, and stays gone."""

from collections.abc import Iterator

from faults.facts import UNDER_LEASE, Facts, Named, Violation


def revived(facts: Facts) -> Iterator[Violation]:
    """A removed, completed or cancelled item is never polled again, nor in the final state."""
    for item, end in _acknowledged(facts):
        if item in facts.final.items:
            state = facts.final.items[item].state
            yield Violation("revived", item, f"has ended, and is {state} at the end", (end.call,))
        for hold in facts.holds.get(item, ()):
            if hold.poll.began_ms > end.call.ended_ms:
                calls = (end.call, hold.poll)
                yield Violation("revived", item, "was polled after it had ended", calls)


def ended_twice(facts: Facts) -> Iterator[Violation]:
    """Only one call gets the answer that it ended an item, and no call changes it afterwards."""
    first: dict[str, Named] = {}
    for item, end in _acknowledged(facts):
        other = first.setdefault(item, end)
        if other is not end:
            calls = (other.call, end.call)
            yield Violation("ended twice", item, "two calls were told that they ended it", calls)
    for item, end in first.items():
        for operation in ("release", "fail", "reschedule"):
            for named in facts.named[operation].get(item, ()):
                if named.is_done and named.call.began_ms > end.call.ended_ms:
                    calls = (end.call, named.call)
                    yield Violation("ended twice", item, f"{operation} was done after that", calls)


def _acknowledged(facts: Facts) -> Iterator[tuple[str, Named]]:
    for operation in (*UNDER_LEASE[:2], "cancel"):
        for item, all_named in facts.named[operation].items():
            for named in all_named:
                if named.is_done:
                    yield item, named
