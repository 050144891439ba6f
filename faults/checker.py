"""The checker of histories: everything that a history proves to be wrong.

It never accuses without proof. A call with an unknown outcome may have happened or not, at any time
from its begin on. What the server did, it did between the begin of the call and its end. A lease is
certainly alive only from the end of the poll to the begin of the poll plus its length.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from faults.facts import Facts, Violation
from faults.final_state import FinalState
from faults.history import History
from faults.rules import (
    additions,
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
    "results": results.results,
    "result of nobody": results.result_of_nobody,
    "unread": readers.unread,
    "reader went back": readers.went_back,
    "sums": receipts.sums,
    "receipt": receipts.bounds,
    "receipt went back": receipts.went_back,
    "key": additions.keys,
    "duplicate": additions.duplicates,
    "repeat": additions.repeats,
    "totals": additions.totals,
    "early": times.early,
    "not dead": times.not_dead,
    "not paused": times.not_paused,
}

_SLACK_MS = 2.0
"""The server counts whole milliseconds, rounded down."""


def check(
    history: History, final: Mapping[str, FinalState], *, slack_ms: float = _SLACK_MS
) -> list[Violation]:
    """What is wrong with a history, whose queues are found at the end as `final` says.

    `slack_ms` is by how much the clocks of server and observers may differ over a lease.
    """
    if unread := set(history.queues()) - set(final):
        raise ValueError(f"nobody has read the end of {sorted(unread)}")
    violations: list[Violation] = []
    for queue, state in final.items():
        facts = Facts(history.of(queue), state, slack_ms)
        for rule in RULES.values():
            violations += rule(facts)
    return [_across_restarts(violation, history) for violation in violations]


def _across_restarts(violation: Violation, history: History) -> Violation:
    """Say so, when the server was restarted between the calls that contradict each other."""
    restarts = [call for call in history.calls if call.operation == "restart"]
    calls = violation.calls
    since_ms = min((call.began_ms for call in calls), default=0.0)
    until_ms = max((call.began_ms for call in calls[1:]), default=float("inf"))
    count = sum(since_ms < restart.began_ms < until_ms for restart in restarts)
    if not count or not calls:
        return violation
    text = f"{violation.text} (and the server was restarted {count} times meanwhile)"
    return Violation(violation.rule, violation.item, text, calls)
