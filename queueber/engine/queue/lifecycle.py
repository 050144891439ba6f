"""The life of an item, and what must always be true of it.

                          ┌─── release, expire ──────┐
                          ▼                          │
    add ───────────────▶ READY ────── poll ──▶     LEASED ── complete, remove ──▶ GONE
     │                   ▲    ▲                    │     │
     │           promote │    └─ redrive ─ DEAD ◀──│─────┘ fail or expire, the last attempt
     └─ with a delay ─▶ DELAYED ◀── fail, expire ──┘
                                   cancel, purge: from everywhere ───────────────▶ GONE

Entries are about runs: items with consecutive ids of one block that share one state. An item is
READY when `visibility_index` has a run with it (in a level of parked items if it waits for a cap,
see `engine/caps/`), DELAYED when `delayed` has one, LEASED when a lease of `leases` holds one, DEAD
when `dead` has one, and GONE when nothing of it is left in its block. Only writes move an item:
time alone never does, so the counters are exact without a scan. `sweep` moves what has become due,
and a poll that finds something due runs it first.
"""

from enum import Enum


class State(Enum):
    READY = "ready"
    DELAYED = "delayed"
    LEASED = "leased"
    DEAD = "dead"
    GONE = "gone"


class DeathReason(Enum):
    """Why an item is a dead letter. The number is what is stored."""

    FAILED = 1
    EXPIRED = 2
    UNCLAIMED = 3
    AWAITED = 4

    def text(self, attempts: int) -> str:
        """In words, for an item that was tried `attempts` times."""
        if self is DeathReason.UNCLAIMED:
            return "nobody leased it in time (expires)"
        if self is DeathReason.FAILED:
            return f"failed {'once' if attempts == 1 else f'{attempts} times'} (attempts_max)"
        if self is DeathReason.AWAITED:
            return "something that it waited for died or was cancelled"
        return f"its lease ended unfinished at attempt {attempts} (attempts_max)"


TRANSITIONS: dict[tuple[State, str], State] = {
    (State.DELAYED, "promote"): State.READY,
    (State.DELAYED, "let_go"): State.READY,
    (State.DELAYED, "let_go, with a delay"): State.DELAYED,
    (State.DELAYED, "let_go, others died"): State.DEAD,
    (State.READY, "poll"): State.LEASED,
    (State.DELAYED, "expire, unclaimed"): State.DEAD,
    (State.READY, "expire, unclaimed"): State.DEAD,
    (State.LEASED, "extend"): State.LEASED,
    (State.LEASED, "release"): State.READY,
    (State.LEASED, "expire"): State.DELAYED,
    (State.LEASED, "expire, with others"): State.READY,
    (State.LEASED, "expire, the last attempt"): State.DEAD,
    (State.LEASED, "fail"): State.DELAYED,
    (State.LEASED, "fail, the last attempt"): State.DEAD,
    (State.LEASED, "complete"): State.GONE,
    (State.LEASED, "remove"): State.GONE,
    (State.DEAD, "redrive"): State.READY,
    (State.DELAYED, "reschedule"): State.DELAYED,
    (State.DELAYED, "reschedule, now"): State.READY,
    (State.READY, "reschedule"): State.DELAYED,
    (State.READY, "cancel"): State.GONE,
    (State.DELAYED, "cancel"): State.GONE,
    (State.LEASED, "cancel"): State.GONE,
    (State.DEAD, "cancel"): State.GONE,
    (State.READY, "purge"): State.GONE,
    (State.DELAYED, "purge"): State.GONE,
    (State.LEASED, "purge"): State.GONE,
    (State.DEAD, "purge"): State.GONE,
    (State.DEAD, "drop, of its age"): State.GONE,
}
"""Every pair that is not here leaves the item as it was."""

INVARIANTS: dict[str, str] = {
    "I1": "an item is in exactly one of visibility_index, delayed, leases and dead",
    "I2": "an entry of those four names a run of a block that exists; its items are left there, "
    "and its place in the block, its size and its mark fit them",
    "I3": "a lease holds at least one run, and no item twice; holders has it with exactly the "
    "blocks of which it holds some",
    "I4": "a lease has exactly one expiry entry, at its expiry, and each such entry has its lease",
    "I5": "the counters of a queue equal what a full count finds",
    "I6": "nothing lies before a low-water mark: of a level, of leases, delays, things to forget",
    "I7": "every key has its family's width and a queue that exists, and every value can be read",
    "I8": "no block or lease of a queue has an id greater than its last_id",
    "I9": "places has the time of a ready or delayed run exactly if it is not the one in its ids",
    "I10": "a batch's live items are as many, and have the digest, that its sums leave; names and "
    "numbers of batches match",
    "I11": "each producer and ended batch has one entry in forget, at its time, and each entry one "
    "of them; an entry names each key at its time; an item that failed has the times of as many "
    "failures",
    "I12": "a log's head and readers agree with its blocks, which follow each other without a gap; "
    "there is a result for each completed item, until it is deleted as read or old",
    "I13": "a load has one entry in forget, at its time, and is known by its name; its parts are "
    "those of a load under way, which holds its batch; none is half committed",
    "I14": "ids of blocks do not overlap, nor do runs of a block; a block has a leftover exactly "
    "if some, not all, of its items are gone, with the right bits and bytes; none is wasteful",
    "I15": "the log of a partition has no gap, but where a later message of a key replaced others; "
    "offsets, positions, times, ids and sequences rise from block to block, and the head agrees "
    "with the blocks; a fork shares messages that exist, and its parent counts it; a version of a "
    "schema has a document, its offset is in the log and not before that of the version before, "
    "and none is later than the one in force",
    "I16": "each name and alias leads to the topic that has it, and the count of topics is right",
    "I17": "a group has a number of its own, is at an offset of each partition's log, and began in "
    "no partition that its topic does not have; of a group that shares messages, each that is "
    "ready, delayed, leased or dead is before its position, and in one of these states",
    "I18": "both forms of the agenda agree, and every topic or group that has something to do is "
    "on it",
    "I19": "last_of_key has the last message of each key, and replaced those before it; no message "
    "has an id or a sequence after the last known one",
    "I20": "a route leads from a queue, without loads if it is about items that are added, to a "
    "topic that is open and refuses no message; the record of a topic counts its routes",
    "I21": "a schedule has a name of its own in the store, an expression and a zone; it has a next "
    "time, later than its last run, unless it is paused or has no further time",
    "I22": "cap_keys has how many items of each cap key hold a slot and how many are parked, and "
    "parked has those; no key holds more slots than its cap, but those that it held when the cap "
    "was lowered; while items of a key are parked it has no slot left, or cap_due has it or the "
    "review of its caps is to come; cap_due has each key with neither, once, at the time of its "
    "record, and none before its low-water mark; as many tokens are set aside as ready items need",
    "I23": "an item has options exactly if its mark says so; item_expiry has those that expire, at "
    "their times, and these are ready or delayed",
    "I24": "a callback belongs to a batch that exists; it is due exactly if its item was not added "
    "and its batch has items, all of which have ended, and may be if the batch has none; and the "
    "counters of callbacks are right",
    "I25": "waits has what each item waits for that is delayed for ever, and waited_for the same "
    "the other way round; what somebody waits for is live, or waited_for has a note of its end; "
    "notes have the last numbers, and none is about items that are to come; and the counters of "
    "both are right",
}
