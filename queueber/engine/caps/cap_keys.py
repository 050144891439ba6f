"""Caps by an attribute: items with the same value of it share a cap, apart from all others.

The value is an item's *cap key*. At most so many items of a key hold a *slot*: those that are
leased, and ready ones that were let go. A poll that meets an item whose key has no slot left, or
whose key has others waiting, *parks* it: it stays ready, but in a level of the index that no poll
looks at. So a poll meets such an item once, however long it waits. Whoever gives a slot back lets
the next parked item of the key go in the same transaction, which then holds that slot.

A rate of a key is a bucket (`rate.py`) of which each lease takes a token. An item is let go only if
there is a token for it, which is set aside until a poll takes it. Nobody's doing brings tokens
back: so a key with parked items that wait for one has an entry in `cap_due`, at the time at which
the next one is back.

Of each key with slots or parked items, or whose bucket is not full, there is a record in
`cap_keys`, and of each parked item an entry in `parked`, in the order in which they are let go: by
level, then by time. Nothing of it is kept in memory.
"""

import struct
from typing import Any

from queueber.db.records.blocks import unpack_attributes
from queueber.db.records.keys import NEVER_MS, text_digest
from queueber.db.records.runs import Run, mark_has_details
from queueber.engine.caps.rate import Rate

_COUNTS = struct.Struct(">II")
_RECORD = struct.Struct(">IIIQQ")
_NO_LIMIT = 1 << 62


class KeyRecord:
    """What is stored of a cap key."""

    __slots__ = ("due_ms", "full_at_us", "parked", "slots", "stored", "taken", "tokens")

    def __init__(self, stored: bytes | None = None) -> None:
        """Raises `struct.error` if it is damaged."""
        self.stored = stored
        self.slots = self.parked = 0
        self.tokens = 0
        """Those that are set aside, each for a ready item that was let go."""
        self.taken = 0
        """Those that leases of this transaction take: together, so that they are rounded once."""
        self.full_at_us = 0
        """When the bucket of its rate is full, see `Rate`."""
        self.due_ms = 0
        """The time of its entry in `cap_due`; 0: it has none."""
        if stored is not None:
            if len(stored) == _COUNTS.size:
                self.slots, self.parked = _COUNTS.unpack(stored)
            else:
                self.slots, self.parked, self.tokens, self.full_at_us, self.due_ms = _RECORD.unpack(
                    stored
                )

    def encode(self) -> bytes:
        """Without what only a rate needs, if that is nothing."""
        if self.tokens or self.full_at_us or self.due_ms:
            return _RECORD.pack(self.slots, self.parked, self.tokens, self.full_at_us, self.due_ms)
        return _COUNTS.pack(self.slots, self.parked)


class CapKeys:
    """The cap keys of one queue, and what each of them may have."""

    __slots__ = ("_attribute", "_limit", "has_checked_clock", "rate", "review_from")

    def __init__(self, attribute: str, limit: int, rate: Rate | None = None) -> None:
        """With a limit of 0 and no rate keys are capped no more: what is parked goes, and slots
        come back."""
        self._attribute = attribute
        self._limit = limit
        self.rate = rate
        self.review_from = b""
        """The key after which a review goes on; after a restart it begins anew."""
        self.has_checked_clock = False
        """Whether no time of a key is further ahead than its rate allows, because all of them were
        reviewed since the start."""

    @property
    def is_capped(self) -> bool:
        return self._limit > 0 or self.rate is not None

    def room(self, key: KeyRecord, now_ms: int) -> int:
        """How many more of its items may have a slot, and a token that is not set aside."""
        slots = self._limit - key.slots if self._limit else _NO_LIMIT
        return max(0, min(slots, self._tokens(key, now_ms) - key.tokens))

    def _tokens(self, key: KeyRecord, now_ms: int) -> int:
        """How many there are, with those that are set aside."""
        if self.rate is None:
            return _NO_LIMIT
        return self.rate.room(key.full_at_us, now_ms) - key.taken

    def lease(self, key: KeyRecord, now_ms: int) -> bool:
        """A poll meets an item: whether it may have it, which takes a slot and a token; if not, it
        counts as parked. No item overtakes those that are."""
        may_be_leased = not key.parked and self.room(key, now_ms) > 0
        if may_be_leased:
            key.slots += 1
            key.taken += 1
        else:
            key.parked += 1
        return may_be_leased

    def lease_let_go(self, key: KeyRecord, now_ms: int, *, has_token: bool) -> bool:
        """As `lease`, of an item that was let go, and holds a slot. It has to wait again if there
        was no rate then, or the rate was lowered since, or the clock set back."""
        key.tokens -= has_token
        may_be_leased = self._tokens(key, now_ms) > 0
        if may_be_leased:
            key.taken += 1
        else:
            key.slots -= 1
            key.parked += 1
        return may_be_leased

    def take_tokens(self, key: KeyRecord, now_ms: int) -> None:
        """The transaction ends."""
        if key.taken and self.rate is not None:
            key.full_at_us = self.rate.take(key.full_at_us, key.taken, now_ms)
        key.taken = 0

    def due_ms(self, key: KeyRecord, now_ms: int) -> int:
        """When to look at a key next, of whose items nobody can be let go now: at its next token if
        some wait for that, at its last one to forget it. `NEVER_MS`: whoever gives a slot back does
        so."""
        rate = self.rate
        if key.parked:
            if self.room(key, now_ms):
                return now_ms  # more than one transaction lets go, or parked by this one
            is_full = self._limit and key.slots >= self._limit
            if rate is None or is_full or key.tokens >= rate.items:
                return NEVER_MS
            return rate.due_ms(key.full_at_us, now_ms, key.tokens + 1)
        if key.slots or rate is None:
            return NEVER_MS
        full_at_ms = rate.due_ms(key.full_at_us, now_ms, rate.items)
        return full_at_ms if full_at_ms > now_ms else NEVER_MS

    def of(self, run: Run, blocks: Any) -> list[bytes]:
        """For each item of a run the digest of its cap key; empty if it has none."""
        if not mark_has_details(run.mark):
            return [b""] * run.count
        _, packed = blocks[run].details(run.at, run.count)
        name = self._attribute
        values = [unpack_attributes(each).get(name, "") if each else "" for each in packed]
        return [text_digest(value) if value else b"" for value in values]
