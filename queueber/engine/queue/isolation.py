"""Isolation: an item that kills its worker is found, and does not use up the attempts of others.

A worker that dies loses everything that it held, and one item of that may be why. The rule:

- Items that were lost together are charged no attempt. Each is quarantined: from then on it is
  leased only to a holder that then holds at most half as many items (`group_max`, in its mark). So
  the culprit is alone after a few deaths, while the others are done in ever smaller groups.
- An item that was lost alone is charged an attempt, as if it had failed.
- Leases that end with their connection (`release_on_disconnect`) are lost together, over all queues
  of that connection. Other leases are lost one by one, each with what it held.
- A holder that holds too much for a quarantined item is given others first. Once that item has
  waited for `QUARANTINE_PATIENCE_MS`, nothing that stands behind it is given to such a holder, so
  the holder comes to hold less and the item has its turn.
- An outcome ends the quarantine: a completed item is gone, a dead or redriven one starts anew.

A queue may turn isolation off: items that were lost together then come back as they were.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from queueber.db.records.keys import due_part
from queueber.db.records.leases import split_held
from queueber.db.records.marks import mark_group_max, with_group_max
from queueber.engine.queue.queue_state import QueueState, QueueTx
from queueber.engine.queue.ready_window import Entry
from queueber.limits import QUARANTINE_PATIENCE_MS


@dataclass(slots=True)
class HeldTogether:
    """What a holder has already, and would lose together with what it is given now."""

    items: int = 0
    group_max: int = 0
    """How many they may be, given which are among them; 0: no limit."""

    def join(self, group: Sequence[tuple[bytes, bytes]]) -> None:
        """The holder is given these, too: entries or held items, with their marks."""
        limits = [limit for _, mark in group if (limit := mark_group_max(mark))]
        self.merge(HeldTogether(len(group), min(limits, default=0)))

    def merge(self, other: "HeldTogether") -> None:
        self.items += other.items
        limits = [limit for limit in (self.group_max, other.group_max) if limit]
        self.group_max = min(limits, default=0)

    def allowed(self, count: int) -> int:
        """How many of `count` items may be given beside what is held."""
        return min(count, max(0, self.group_max - self.items)) if self.group_max else count


def held_by(queue: QueueState, leases: Sequence[bytes]) -> HeldTogether:
    """What those of the leases hold that are still there."""
    held = HeldTogether()
    for _, items in queue.leases.read(leases):
        held.join(split_held(items))
    return held


def has_quarantined(queue: QueueState) -> bool:
    """Whether it matters at all who holds what."""
    return queue.counters.quarantined > 0


class Verdict(Enum):
    """Whether an entry is given to a holder."""

    GIVE = "it is given"
    PASS_OVER = "others are given first"
    WAIT = "nothing behind it is given"


class Gatekeeper:
    """Says of each entry whether a holder may have it now."""

    __slots__ = ("_impatient_before",)

    def __init__(self, now_ms: int) -> None:
        self._impatient_before = due_part(max(0, now_ms - QUARANTINE_PATIENCE_MS), b"")

    def judge(self, entry: Entry, holds: int) -> Verdict:
        """`holds` is how many items the holder has, with those that it was just given."""
        limit = mark_group_max(entry[1])
        if not limit or holds < limit:
            return Verdict.GIVE
        return Verdict.WAIT if entry[0] < self._impatient_before else Verdict.PASS_OVER


def quarantine(
    tx: QueueTx, held: Sequence[tuple[bytes, bytes]], together: int
) -> Sequence[tuple[bytes, bytes]]:
    """Several items of a holder are lost, `together` in all. Returns them with their new marks."""
    if not tx.queue.settings.isolation:
        return held
    tx.counters.quarantined += sum(not mark_group_max(mark) for _, mark in held)
    return [(item_id, with_group_max(mark, together // 2)) for item_id, mark in held]


def end_quarantine(tx: QueueTx, items: Sequence[tuple[bytes, bytes]]) -> None:
    """Items, given with their marks, have ended: they count as quarantined no more."""
    tx.counters.quarantined -= sum(1 for _, mark in items if mark_group_max(mark))
