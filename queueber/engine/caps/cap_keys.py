"""Caps by an attribute: items with the same value of it share a cap, apart from all others.

The value is an item's *cap key*. At most so many items of a key hold a *slot*: those that are
leased, and ready ones that were let go. A poll that meets an item whose key has no slot left, or
whose key has others waiting, *parks* it: it stays ready, but in a level of the index that no poll
looks at. So a poll meets such an item once, however long it waits. Whoever gives a slot back lets
the next parked item of the key go in the same transaction, which then holds that slot.

Of each key with slots or parked items there is a record in `cap_keys`, and of each parked item an
entry in `parked`, in the order in which they are let go: by level, then by time. Nothing of it is
kept in memory.
"""

import struct
from collections.abc import Iterable, Sequence
from typing import Any

from queueber.db.families import Family
from queueber.db.records.blocks import unpack_attributes
from queueber.db.records.keys import (
    DIGEST_BYTES,
    DUE_BYTES,
    LEVEL_BYTES,
    NEVER_MS,
    PREFIX_BYTES,
    level_part,
    prefix_end,
    text_digest,
)
from queueber.db.records.runs import (
    Entry,
    Run,
    at_time_of,
    decode_entry,
    mark_has_details,
    mark_holds_slot,
    mark_is_parked,
    mark_level,
    parked,
    part,
    pick,
    with_slot,
    without_slot,
)
from queueber.engine.kernel.due_scan import Done
from queueber.engine.kernel.transaction import Transaction
from queueber.errors import FailedPrecondition, invariant
from queueber.limits import CAP_MOVED_MAX
from queueber.model import QueueSettings

_RECORD = struct.Struct(">II")
_AFTER_ANY_ENTRY = b"\xff" * (LEVEL_BYTES + DUE_BYTES + 1)

Tx = Transaction[Any]


class CapKeys:
    """The cap keys of one queue."""

    __slots__ = ("_attribute", "_limit", "review_from")

    def __init__(self, attribute: str, limit: int) -> None:
        """With a limit of 0 keys are capped no more: what is parked goes, and slots come back."""
        self._attribute = attribute
        self._limit = limit
        self.review_from = b""
        """The key after which a review goes on; after a restart it begins anew."""

    @property
    def has_limit(self) -> bool:
        return self._limit > 0

    def has_room(self, key: "KeyCounts") -> bool:
        return not self._limit or key.slots < self._limit

    def room(self, key: "KeyCounts") -> int:
        """How many parked items of the key a transaction may let go."""
        room = max(0, self._limit - key.slots) if self._limit else CAP_MOVED_MAX
        return min(room, key.parked, CAP_MOVED_MAX)

    def of(self, run: Run, blocks: Any) -> list[bytes]:
        """For each item of a run the digest of its cap key; empty if it has none."""
        if not mark_has_details(run.mark):
            return [b""] * run.count
        _, packed = blocks[run].details(run.at, run.count)
        name = self._attribute
        values = [unpack_attributes(each).get(name, "") if each else "" for each in packed]
        return [text_digest(value) if value else b"" for value in values]

    def changes(self, tx: Tx) -> "KeyChanges":
        """What a transaction has changed so far."""
        found: KeyChanges | None = tx.pending.get(self)
        if found is None:
            found = tx.pending[self] = KeyChanges(tx, self)
            tx.before_write(found.write)
        return found


class KeyCounts:
    """The record of a cap key."""

    __slots__ = ("parked", "slots")

    def __init__(self, value: bytes | None) -> None:
        self.slots, self.parked = (0, 0) if value is None else decode_cap_key(value)


def decode_cap_key(value: bytes) -> tuple[int, int]:
    """Slots that are held, and items that are parked. Raises `struct.error` if it is damaged."""
    slots, parked_items = _RECORD.unpack(value)
    return slots, parked_items


class KeyChanges:
    """The records of cap keys that one transaction changes, and who is let go at its end."""

    __slots__ = ("_gone", "_keys", "_of", "_tx")

    def __init__(self, tx: Tx, of: CapKeys) -> None:
        self._tx = tx
        self._of = of
        self._keys: dict[bytes, KeyCounts] = {}
        self._gone: set[bytes] = set()
        """Entries of `parked` that this transaction has deleted already."""

    def __getitem__(self, digest: bytes) -> KeyCounts:
        found = self._keys.get(digest)
        if found is None:
            self.read([digest])
            found = self._keys[digest]
        return found

    def read(self, digests: Iterable[bytes]) -> None:
        """Read the records of many keys at once."""
        missing = [each for each in dict.fromkeys(digests) if each and each not in self._keys]
        prefix = self._tx.prefix
        if missing:
            stored = self._tx.store.get_many(Family.CAP_KEYS, [prefix + each for each in missing])
            for digest, value in zip(missing, stored, strict=True):
                self._keys[digest] = KeyCounts(value)

    def free(self, digest: bytes) -> None:
        """A slot of the key is given back."""
        key = self[digest]
        invariant(key.slots > 0, "I22", queue=self._tx.queue.name, key=digest.hex())
        key.slots -= 1
        self._tx.counters.slots -= 1

    def park(self, entries: Sequence[tuple[bytes, Entry]]) -> None:
        """Store items that are parked now, each with its key, which counts them already."""
        tx = self._tx
        marked = [(digest, _parked(entry)) for digest, entry in entries]
        keys = [_parked_key(tx.prefix, digest, entry) for digest, entry in marked]
        tx.batch.put_many(Family.PARKED, [(key, b"") for key in keys])
        tx.queue.ready.put(tx, sorted([entry for _, entry in marked]))
        tx.counters.parked += len(entries)

    def unpark(self, digest: bytes, entry: Entry) -> None:
        """A parked item is gone, or is let go; its entry of the index is the caller's."""
        key = _parked_key(self._tx.prefix, digest, entry)
        self._tx.batch.delete(Family.PARKED, key)
        self._gone.add(key)
        self[digest].parked -= 1
        self._tx.counters.parked -= 1

    def write(self) -> None:
        """Let go whom the slots allow, and write the records."""
        tx, prefix = self._tx, self._tx.prefix
        for digest, key in self._keys.items():
            if self._of.has_room(key) and key.parked:
                self._let_go(digest, key)
            if key.slots or key.parked:
                tx.batch.put(Family.CAP_KEYS, prefix + digest, _RECORD.pack(key.slots, key.parked))
            else:
                tx.batch.delete(Family.CAP_KEYS, prefix + digest)

    def _let_go(self, digest: bytes, key: KeyCounts) -> None:
        tx, wanted = self._tx, self._of.room(key)
        head = tx.prefix + digest
        # What was deleted or parked by this very transaction is not in the store as it says.
        most = wanted + len(self._gone)
        stored = tx.store.scan(Family.PARKED, head, head + _AFTER_ANY_ENTRY, most)
        chosen = [entry_key for entry_key, _ in stored if entry_key not in self._gone][:wanted]
        places = [tx.prefix + entry_key[PREFIX_BYTES + DIGEST_BYTES :] for entry_key in chosen]
        ready: list[Entry] = []
        for place, value in zip(
            places, tx.store.get_many(Family.VISIBILITY_INDEX, places), strict=True
        ):
            invariant(value is not None, "I22", queue=tx.queue.name, entry=place.hex())
            entry = decode_entry(place[PREFIX_BYTES + LEVEL_BYTES :], value or b"")
            tx.queue.ready.take_some(tx, place[PREFIX_BYTES], entry, [])
            self.unpark(digest, entry)
            due, run = entry
            ready.append((due, run._replace(mark=with_slot(run.mark))))
        if ready:
            tx.queue.ready.put(tx, sorted(ready))
            key.slots += len(ready)
            tx.counters.slots += len(ready)
        if key.parked and self._of.has_room(key):
            # More than one transaction moves, or parked by this one.
            tx.counters.caps_to_review = 1
            tx.after_write(setattr, self._of, "review_from", b"")
            tx.due(tx.now_ms)


def _parked(entry: Entry) -> Entry:
    due, run = entry
    return due, run._replace(mark=parked(run.mark))


def _parked_key(prefix: bytes, digest: bytes, entry: Entry) -> bytes:
    due, run = entry
    return prefix + digest + level_part(mark_level(run.mark)) + due


class Parks:
    """Splits what the polls of one call meet: what they get, and what is parked."""

    __slots__ = ("_changes", "_keys", "_parked", "_tx")

    def __init__(self, tx: Tx, keys: CapKeys) -> None:
        self._tx = tx
        self._keys = keys
        self._changes = keys.changes(tx)
        self._parked: list[tuple[bytes, Entry]] = []

    def __bool__(self) -> bool:
        """Whether there is something to park."""
        return bool(self._parked)

    @property
    def is_full(self) -> bool:
        """Whether a transaction parks no more."""
        return len(self._parked) >= CAP_MOVED_MAX

    def split(self, due: bytes, run: Run, blocks: Any) -> tuple[Sequence[Run], Sequence[Run]]:
        """The items that are leased, which take a slot if they have a cap key; and the others."""
        if mark_holds_slot(run.mark) or not self._keys.has_limit:
            return [run], ()
        digests = self._keys.of(run, blocks)
        if not any(digests):
            return [run], ()
        changes = self._changes
        changes.read(digests)
        slots: list[int] = []
        waiting: list[int] = []
        for at, digest in enumerate(digests):
            if not digest:
                continue
            key = changes[digest]
            if key.parked or not self._keys.has_room(key):
                key.parked += 1
                waiting.append(at)
            else:
                key.slots += 1
                slots.append(at)
        self._tx.counters.slots += len(slots)
        if len(slots) == run.count:
            return [run._replace(mark=with_slot(run.mark))], ()
        sizes = blocks.sizes(run)
        held = [each._replace(mark=with_slot(each.mark)) for each in pick(run, slots, sizes)[0]]
        plain = [at for at, digest in enumerate(digests) if not digest]
        kept = sorted([*held, *pick(run, plain, sizes)[0]])
        singles = [part(run, at, at + 1, sizes) for at in waiting]
        for at, single in zip(waiting, singles, strict=True):
            self._parked.append((digests[at], at_time_of(due, single)))
        return kept, singles

    def take_in(self) -> None:
        """Park what the polls met; it has left its place in the index by now."""
        if self._parked:
            self._changes.park(self._parked)
        if self.is_full:
            # There may be more that polls can have, behind what was parked.
            self._tx.due(self._tx.now_ms)


def _keys_of(tx: Tx) -> CapKeys | None:
    caps = tx.queue.caps
    return None if caps is None else caps.keys


def free_slots(tx: Tx, runs: list[Run]) -> list[Run]:
    """Items have left their leases: the same without slots, which others may have now."""
    keys = _keys_of(tx)
    if keys is None:
        return runs
    blocks = tx.queue.blocks.reader()
    return [_free(tx, keys, run, blocks) for run in runs]


def _free(tx: Tx, keys: CapKeys, run: Run, blocks: Any) -> Run:
    if not mark_holds_slot(run.mark):
        return run
    changes = keys.changes(tx)
    digests = keys.of(run, blocks)
    changes.read(digests)
    for digest in digests:
        changes.free(digest)
    return run._replace(mark=without_slot(run.mark))


def leave_ready(tx: Tx, due: bytes, runs: Sequence[Run]) -> None:
    """Ready items are gone, which may have been parked or held slots; `due` is that of their
    entry."""
    keys = _keys_of(tx)
    if keys is None:
        return
    blocks = tx.queue.blocks.reader()
    for run in runs:
        if mark_is_parked(run.mark):
            (digest,) = keys.of(run, blocks)  # it is alone
            keys.changes(tx).unpark(digest, at_time_of(due, run))
        else:
            _free(tx, keys, run, blocks)


def change_caps(tx: Tx, settings: QueueSettings) -> None:
    """The queue gets other settings: have those looked at whom another cap concerns."""
    present, counters = tx.queue.settings, tx.counters
    is_in_use = counters.slots or counters.parked
    if settings.cap_by != present.cap_by and is_in_use:
        raise FailedPrecondition(
            f"capBy: {counters.slots + counters.parked} items of queue {tx.queue.name!r} are "
            f"leased or parked by {present.cap_by!r}; set capByConcurrencyMax to 0, and change it "
            "once they are done"
        )
    if counters.parked and settings.cap_by_concurrency_max != present.cap_by_concurrency_max:
        counters.caps_to_review = 1
        tx.due(tx.now_ms)


def review_due_ms(queue: Any, now_ms: int) -> int:
    return now_ms if queue.counters.caps_to_review else NEVER_MS


def review_caps(tx: Tx, keys_max: int) -> Done:
    """Look at some cap keys after the cap was changed: who may go now is let go."""
    keys = _keys_of(tx)
    if keys is None:
        tx.counters.caps_to_review = 0
        return Done(0)
    start = tx.prefix + keys.review_from
    found = tx.store.scan(Family.CAP_KEYS, start, prefix_end(tx.prefix), keys_max)
    if len(found) < keys_max:
        tx.counters.caps_to_review = 0
        tx.after_write(setattr, keys, "review_from", b"")
    else:
        # The last one is looked at again: it may have more than one transaction moves.
        after = found[-1][0][PREFIX_BYTES:] + b"\0"
        tx.after_write(setattr, keys, "review_from", after)
    keys.changes(tx).read([key[PREFIX_BYTES:] for key, _ in found])
    return Done(len(found))
