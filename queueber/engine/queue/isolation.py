"""Isolation: an item that kills its worker is found, and does not use up the attempts of others.

A worker that dies loses all items that it held, and one of them may have killed it. The rule:

- Items that were lost together do not count an attempt. Each is quarantined: from then on it is
  leased only if its holder then holds at most half as many items (`group_max`, in its mark). So
  the culprit is alone after a few deaths, while workers finish the others in smaller groups.
- An item that was lost alone counts an attempt, as if it had failed.
- All leases that end with one connection (`release_on_disconnect`) are lost together, over all its
  queues. A lease that runs out loses its items apart from those of other leases.
- A holder that holds too many items for a quarantined one gets other items first. Once that item
  has waited for `QUARANTINE_PATIENCE_MS`, such a holder gets no item that comes after it. So the
  holder finishes what it holds, and then gets the item.
- An outcome ends the quarantine: a completed item is deleted, a dead or redriven one starts anew.

A queue may turn isolation off: items that were lost together are then just ready again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from queueber.db.records.keys import Due, split_due_part
from queueber.db.records.runs import Run, count_items, mark_group_max, uncharged_again
from queueber.engine.queue.queue_state import QueueState, QueueTx
from queueber.limits import QUARANTINE_PATIENCE_MS


@dataclass(slots=True)
class HeldTogether:
    """The items that a holder has already, and would lose together with those it gets now."""

    items: int = 0
    group_max: int = 0
    """The smallest limit of the items; 0: none has a limit."""

    def join(self, group: Sequence[Run]) -> None:
        """The holder gets these as well."""
        limits = [limit for run in group if (limit := mark_group_max(run.mark))]
        self.merge(HeldTogether(count_items(group), min(limits, default=0)))

    def merge(self, other: "HeldTogether") -> None:
        self.items += other.items
        limits = [limit for limit in (self.group_max, other.group_max) if limit]
        self.group_max = min(limits, default=0)

    def allowed(self, count: int) -> int:
        """How many of `count` items the holder may get beside what it holds."""
        return min(count, max(0, self.group_max - self.items)) if self.group_max else count


def held_by(queue: QueueState, leases: Sequence[bytes]) -> HeldTogether:
    """What those of the leases hold that have not ended."""
    held = HeldTogether()
    for _, runs in queue.leases.read(leases):
        held.join(runs)
    return held


def has_quarantined(queue: QueueState) -> bool:
    """Whether a poll must know what its caller holds."""
    return queue.counters.quarantined > 0


class Verdict(Enum):
    """Whether a holder gets an entry."""

    GIVE = "the holder gets it"
    PASS_OVER = "the holder gets others first"
    WAIT = "the holder gets nothing that comes after it"


def judge(due: Due, limit: int, holds: int, now_ms: int) -> Verdict:
    """Whether the holder gets a quarantined item with this due part and limit.

    `holds` is how many items the holder has, with those that this poll gave it so far.
    """
    if holds < limit:
        return Verdict.GIVE
    waited_ms = now_ms - split_due_part(due)[0]
    return Verdict.WAIT if waited_ms > QUARANTINE_PATIENCE_MS else Verdict.PASS_OVER


def quarantine(tx: QueueTx, held: Sequence[Run], together: int) -> Sequence[Run]:
    """A holder lost these items, and `together` in all. Returns them with their new marks."""
    limit = None
    if tx.queue.settings.isolation:
        limit = together // 2
        unlimited = [run for run in held if not mark_group_max(run.mark)]
        tx.counters.quarantined += count_items(unlimited)
    return [run._replace(mark=uncharged_again(run.mark, limit)) for run in held]


def end_quarantine(tx: QueueTx, runs: Sequence[Run]) -> None:
    """Count items that are finished or dead as quarantined no more."""
    tx.counters.quarantined -= count_items([run for run in runs if mark_group_max(run.mark)])
