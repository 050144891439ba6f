"""The history checker: finds everything that a history proves to be wrong.

It reports only what is certain. A call of unknown outcome may or may not have happened, at any time
after its begin. Any other call took effect between its begin and its end. A lease is certainly
alive only from the end of its poll to the begin of the poll plus the lease time.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from faults.facts import Facts, Violation
from faults.final_state import FinalState
from faults.history import SCHEDULES, TOPICS, History
from faults.rules import (
    additions,
    caps,
    endings,
    items,
    leases,
    losses,
    readers,
    receipts,
    results,
    times,
)

__all__ = ["RULES", "Violation", "check"]

Rule: TypeAlias = Callable[[Facts], Iterator[Violation]]

RULES: Mapping[str, Rule] = {
    "lost": losses.lost,
    "phantom": items.phantom,
    "contents": items.contents,
    "revived": endings.revived,
    "ended twice": endings.ended_twice,
    "overlap": leases.overlap,
    "stale lease": leases.stale_lease,
    "lost lease": leases.lost_lease,
    "deliveries": leases.deliveries,
    "results": results.results,
    "result of nobody": results.result_of_nobody,
    "unread": readers.unread,
    "reader went back": readers.went_back,
    "sums": receipts.sums,
    "receipt": receipts.bounds,
    "receipt went back": receipts.went_back,
    "forgotten too early": receipts.forgotten_too_early,
    "key": additions.keys,
    "duplicate": additions.duplicates,
    "repeat": additions.repeats,
    "totals": additions.totals,
    "early": times.early,
    "not dead": times.not_dead,
    "not expired": times.not_expired,
    "not paused": times.not_paused,
    "too many leased": caps.too_many_leased,
    "too many of a key": caps.too_many_of_a_key,
    "too fast": caps.too_fast,
    "too fast for a key": caps.too_fast_for_a_key,
}

_SLACK_MS = 2.0
"""The server's clock has whole milliseconds, rounded down."""


def check(
    history: History, final: Mapping[str, FinalState], *, slack_ms: float = _SLACK_MS
) -> list[Violation]:
    """The violations in a history. `final` has the final state of its queues.

    `slack_ms` is how much the clocks of server and recorders may differ over a lease.
    """
    if unread := set(history.queues()) - set(final) - {TOPICS, SCHEDULES}:
        raise ValueError(f"the final state of {sorted(unread)} is missing")
    violations: list[Violation] = []
    for queue, state in final.items():
        facts = Facts(history.of(queue), state, slack_ms)
        for rule in RULES.values():
            violations += rule(facts)
    return [_across_restarts(violation, history) for violation in violations]


def _across_restarts(violation: Violation, history: History) -> Violation:
    """Add a note if the server was restarted between the contradicting calls."""
    restarts = [call for call in history.calls if call.operation == "restart"]
    calls = violation.calls
    since_ms = min((call.began_ms for call in calls), default=0.0)
    until_ms = max((call.began_ms for call in calls[1:]), default=float("inf"))
    count = sum(since_ms < restart.began_ms < until_ms for restart in restarts)
    if not count or not calls:
        return violation
    text = f"{violation.text} (and the server was restarted {count} times meanwhile)"
    return Violation(violation.rule, violation.item, text, calls)
