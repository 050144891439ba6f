"""Caps: a queue never has more items leased, at once or in a time, than its caps allow."""

from collections.abc import Iterator, Sequence
from math import inf

from faults.facts import Facts, Violation
from faults.history import Call
from faults.rules.leases import alive_until_ms


def too_many_leased(facts: Facts) -> Iterator[Violation]:
    """No more items than `concurrency_max` are certainly leased at one time."""
    for caps, until_ms in _in_force(facts):
        limit = caps.arguments["concurrency_max"]
        if limit and (found := _one_too_many(facts, caps, until_ms, limit, set(facts.holds))):
            text = f"was given while {limit} others were leased, the cap"
            yield Violation("too many leased", found[0], text, (caps, found[1]))


def too_many_of_a_key(facts: Facts) -> Iterator[Violation]:
    """No more items of a cap key than `cap_by_concurrency_max` are certainly leased at one time."""
    of_key = _items_of_keys(facts)
    for caps, until_ms in _in_force(facts):
        limit = caps.arguments.get("cap_by_concurrency_max", 0)
        for key, items in of_key.items() if limit else ():
            if found := _one_too_many(facts, caps, until_ms, limit, items):
                text = f"was given while {limit} others of {key!r} were leased, the cap"
                yield Violation("too many of a key", found[0], text, (caps, found[1]))


def _one_too_many(
    facts: Facts, caps: Call, until_ms: float, limit: int, items: set[str]
) -> tuple[str, Call] | None:
    """An item that was given while as many others of these as may be were certainly leased."""
    changes: list[tuple[float, int, str, Call]] = []
    for item in items & set(facts.holds):
        for hold in facts.holds[item]:
            # One that was polled before may be one too many since the cap was lowered.
            is_of_these = hold.poll.began_ms >= caps.ended_ms and hold.poll.ended_ms < until_ms
            over_at_ms = alive_until_ms(facts, item, hold)
            if is_of_these and over_at_ms > hold.poll.ended_ms:
                changes.append((hold.poll.ended_ms, 1, item, hold.poll))
                changes.append((over_at_ms, -1, item, hold.poll))
    leased = 0
    # What ends at a time ends before what begins then.
    for _, change, item, poll in sorted(changes, key=lambda each: each[:3]):
        leased += change
        if leased > limit:
            return item, poll
    return None


def too_fast(facts: Facts) -> Iterator[Violation]:
    """Between any two polls, no more items are given than a full burst and what the rate allows in
    the time between them."""
    for caps, until_ms in _in_force(facts):
        rate = caps.arguments["rate_items"], caps.arguments["rate_ms"]
        if rate[0]:
            polls = _polls_within(facts, caps, until_ms)
            yield from _too_many_in_a_time(facts, caps, polls, rate, "too fast")


def too_fast_for_a_key(facts: Facts) -> Iterator[Violation]:
    """As `too_fast`, of the items of each cap key."""
    of_key = _items_of_keys(facts)
    for caps, until_ms in _in_force(facts):
        rate = caps.arguments.get("cap_by_rate_items", 0), caps.arguments.get("cap_by_rate_ms", 0)
        if not rate[0]:
            continue
        polls = _polls_within(facts, caps, until_ms)
        for items in of_key.values():
            given = [(poll, [each for each in ids if each in items]) for poll, ids in polls]
            some = [(poll, ids) for poll, ids in given if ids]
            yield from _too_many_in_a_time(facts, caps, some, rate, "too fast for a key")


_Given = Sequence[tuple[Call, Sequence[str]]]
"""Polls, each with items that it was given."""


def _polls_within(facts: Facts, caps: Call, until_ms: float) -> _Given:
    """The polls that were certainly served while the caps held."""
    return [
        (poll, poll.answer["ids"])
        for poll in facts.by_operation["poll"]
        if poll.began_ms >= caps.ended_ms and poll.ended_ms < until_ms
        if poll.answer.get("ids")
    ]


def _too_many_in_a_time(
    facts: Facts, caps: Call, polls: _Given, rate: tuple[int, int], rule: str
) -> Iterator[Violation]:
    items, ms = rate
    in_order = sorted(polls, key=lambda each: each[0].ended_ms)
    for first, _ in polls:
        count = 0
        for poll, ids in in_order:
            if poll.began_ms < first.began_ms:
                continue
            count += len(ids)
            passed_ms = poll.ended_ms - first.began_ms + facts.slack_ms
            if count > items + items * passed_ms / ms and not facts.is_step_within(
                first.began_ms, poll.ended_ms, forward=True
            ):
                text = f"was given as number {count} in {passed_ms:.0f} ms"
                yield Violation(rule, ids[0], text, (caps, first, poll))
                return


def _items_of_keys(facts: Facts) -> dict[str, set[str]]:
    """The items of each cap key that callers know of."""
    of_key: dict[str, set[str]] = {}
    for add in facts.by_operation["add"]:
        duplicates = add.answer.get("duplicates") or ()
        for at, item in enumerate(add.answer.get("ids", ())):
            if add.given("cap_keys") and not (duplicates and duplicates[at]):
                of_key.setdefault(add.given("cap_keys")[at], set()).add(item)
    of_key.pop("", None)
    return of_key


def _in_force(facts: Facts) -> Iterator[tuple[Call, float]]:
    """The caps that were set, and until when each certainly held."""
    calls = facts.by_operation["caps"]
    for at, call in enumerate(calls):
        if call.is_ok:
            yield call, calls[at + 1].began_ms if at + 1 < len(calls) else inf
