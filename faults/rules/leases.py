"""Leases: an item has one holder at a time, which keeps it until the lease ends."""

from collections.abc import Iterator
from itertools import combinations
from math import inf

from faults.facts import Facts, Hold, Violation
from faults.history import Call
from faults.rules.times import may_be_redriven

_COUNTED_SURELY = 255
"""What counts no attempt is counted so often at most."""


def overlap(facts: Facts) -> Iterator[Violation]:
    """No poll returns an item while another lease on it is certainly alive."""
    for item, holds in facts.holds.items():
        for first, second in combinations(holds, 2):
            if first.lease == second.lease:
                calls = (first.poll, second.poll)
                yield Violation("overlap", item, "was given twice under one lease", calls)
            elif _overlaps(facts, item, first, second):
                yield Violation("overlap", item, "has two leases", (first.poll, second.poll))


def _overlaps(facts: Facts, item: str, one: Hold, other: Hold) -> bool:
    one_is_over = other.poll.ended_ms >= alive_until_ms(facts, item, one)
    other_is_over = one.poll.ended_ms >= alive_until_ms(facts, item, other)
    if other.poll.began_ms >= one.poll.ended_ms:
        return not one_is_over
    if one.poll.began_ms >= other.poll.ended_ms:
        return not other_is_over
    # The order of the two is unknown. In both orders the first lease was alive at the second poll.
    return not one_is_over and not other_is_over


def stale_lease(facts: Facts) -> Iterator[Violation]:
    """The server accepts an outcome only from the holder of the item."""
    for item in {item: None for of_item in facts.named.values() for item in of_item}:
        holds = facts.holds.get(item, [])
        by_lease = {hold.lease: hold for hold in holds}
        for named in facts.under_lease(item):
            if not named.is_done:
                continue
            own = by_lease.get(named.lease)
            if own is None:
                text = "was accepted under a lease that it was never given under"
                yield Violation("stale lease", item, text, (named.call,))
                continue
            for hold in holds:
                is_later = hold.poll.began_ms >= own.poll.ended_ms
                if is_later and hold.poll.ended_ms <= named.call.began_ms:
                    calls = (own.poll, hold.poll, named.call)
                    text = "was accepted from a holder who had lost it to another"
                    yield Violation("stale lease", item, text, calls)
            if named.call.began_ms > _over_at_ms(facts, own, named.call):
                text = "was accepted after the lease had run out"
                yield Violation("stale lease", item, text, (own.poll, named.call))


def lost_lease(facts: Facts) -> Iterator[Violation]:
    """The server does not refuse a holder whose lease is certainly alive."""
    for item, holds in list(facts.holds.items()):
        for hold in holds:
            for named in facts.under_lease(item):
                if named.lease == hold.lease and named.is_done is False:
                    until_ms = alive_until_ms(facts, item, hold)
                    if hold.poll.ended_ms <= named.call.began_ms and named.call.ended_ms < until_ms:
                        calls = (hold.poll, named.call)
                        text = "was refused to a holder whose lease is alive"
                        yield Violation("lost lease", item, text, calls)
            for call, _, is_done in facts.extends.get(hold.lease, ()):
                if is_done is False and call.ended_ms < alive_until_ms(facts, item, hold):
                    text = "its lease could not be extended, though it is alive"
                    yield Violation("lost lease", item, text, (hold.poll, call))


def deliveries(facts: Facts) -> Iterator[Violation]:
    """Each lease of an item is counted, until it is redriven."""
    for item, holds in facts.holds.items():
        counted = sorted(
            (hold for hold in holds if 0 < hold.deliveries < _COUNTED_SURELY),
            key=lambda hold: hold.poll.began_ms,
        )
        for first, second in combinations(counted, 2):
            calls = first.poll, second.poll
            is_after = first.poll.ended_ms <= second.poll.began_ms
            if not is_after or may_be_redriven(facts, item, *calls):
                continue
            if second.deliveries <= first.deliveries:
                told = f"{first.deliveries} and then {second.deliveries}"
                yield Violation("deliveries", item, f"was given {told} times", calls)


def alive_until_ms(facts: Facts, item: str, hold: Hold) -> float:
    """The time until which the lease certainly holds the item."""
    poll = hold.poll
    extends = [each for each in facts.extends.get(hold.lease, ()) if each[2] is not False]
    # Any extend that had not ended when the last one began may have set the expiry last.
    set_by: list[tuple[Call, float, bool | None]] = [
        (poll, poll.arguments["lease_ms"], True), *extends,
    ]  # fmt: skip
    latest_ms = max((call.began_ms for call, _, is_done in extends if is_done), default=-inf)
    expiries = [call.began_ms + ms for call, ms, _ in set_by if call.ended_ms >= latest_ms]
    return min([*expiries, *_cut_short_ms(facts, item, hold)]) - facts.slack_ms


def _cut_short_ms(facts: Facts, item: str, hold: Hold) -> Iterator[float]:
    """The begin of a call that may have ended the lease before its expiry."""
    for named in facts.under_lease(item):
        if named.lease == hold.lease and named.may_be_done:
            yield named.call.began_ms
    for named in facts.named["cancel"].get(item, ()):
        if named.may_be_done:
            yield named.call.began_ms
    for purge in facts.purges("leased"):
        if purge.ended_ms >= hold.poll.began_ms:
            yield purge.began_ms
    if (call := facts.hung_up.get(hold.lease)) is not None:
        yield call.began_ms
    for step in facts.by_operation["clock_step"]:
        if step.arguments["ms"] > 0 and step.ended_ms >= hold.poll.began_ms:
            yield step.began_ms


def _over_at_ms(facts: Facts, hold: Hold, outcome: Call) -> float:
    """The latest end of the lease, as known at the time of an outcome."""
    if facts.is_step_within(hold.poll.began_ms, outcome.ended_ms, forward=False):
        return inf
    ends: list[float] = [hold.poll.ended_ms + hold.poll.arguments["lease_ms"]]
    ends += [
        call.ended_ms + ms
        for call, ms, is_done in facts.extends.get(hold.lease, ())
        if is_done is not False
    ]
    return max(ends) + facts.slack_ms
