"""The life of an item, and what must always be true of it.

            add ──────────────▶ READY ◀────────────── expire ───┐
             │                    ▲  └──── poll ──▶ IN_PROGRESS ─┤
             └──(with a delay)──▶ DELAYED                        └── remove ──▶ GONE
                                  promote: DELAYED ──▶ READY

An item is READY when `visibility_index` has it, DELAYED when `delayed` has it, IN_PROGRESS when
`in_progress` has it, and GONE when `items` has it no more. Only writes move an item: time alone
never does, so the counters are exact without a scan. What is due because time passed is moved by
`sweep`, which a poll runs first when it finds that something is due.
"""

from enum import Enum


class State(Enum):
    READY = "ready"
    DELAYED = "delayed"
    IN_PROGRESS = "in progress"
    GONE = "gone"


TRANSITIONS: dict[tuple[State, str], State] = {
    (State.DELAYED, "promote"): State.READY,
    (State.READY, "poll"): State.IN_PROGRESS,
    (State.IN_PROGRESS, "extend"): State.IN_PROGRESS,
    (State.IN_PROGRESS, "expire"): State.READY,
    (State.IN_PROGRESS, "remove"): State.GONE,
}
"""Every pair that is not here leaves the item as it was."""

INVARIANTS: dict[str, str] = {
    "I1": "an item is in exactly one of visibility_index, delayed and in_progress",
    "I2": "an entry of those three names an item that exists, and the size of its contents",
    "I3": "a lease holds at least one item, and exactly the in-progress items that name it",
    "I4": "a lease has exactly one expiry entry, at its expiry, and each such entry has its lease",
    "I5": "the counters of a queue equal what a full count finds",
    "I6": "nothing lies before a low-water mark: ready_low, lease_due_ms, delayed_due_ms",
    "I7": "every key has its family's width and a queue that exists, and every value can be read",
    "I8": "no id or lease of a queue is greater than its last_id",
}
