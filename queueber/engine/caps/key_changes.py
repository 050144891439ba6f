"""The records of cap keys that a transaction changes, and who is let go at its end."""

from collections.abc import Iterable, Sequence
from typing import Any

from queueber.db.families import Family
from queueber.db.records.keys import (
    DIGEST_BYTES,
    DUE_BYTES,
    LEVEL_BYTES,
    NEVER_MS,
    PREFIX_BYTES,
    due_part,
    level_part,
)
from queueber.db.records.runs import (
    Entry,
    Run,
    at_time_of,
    decode_entry,
    mark_has_token,
    mark_holds_slot,
    mark_is_parked,
    mark_level,
    parked,
    with_slot,
    with_token,
    without_slot,
)
from queueber.engine.caps.cap_keys import CapKeys, KeyRecord
from queueber.engine.kernel.transaction import Transaction
from queueber.errors import invariant
from queueber.limits import CAP_MOVED_MAX

_AFTER_ANY_ENTRY = b"\xff" * (LEVEL_BYTES + DUE_BYTES + 1)

Tx = Transaction[Any]


def key_changes(tx: Tx, keys: CapKeys) -> "KeyChanges":
    """What the transaction has changed so far."""
    found: KeyChanges | None = tx.pending.get(keys)
    if found is None:
        found = tx.pending[keys] = KeyChanges(tx, keys)
        tx.before_write(found.write)
    return found


class KeyChanges:
    __slots__ = ("_gone", "_has_parked", "_keys", "_left", "_of", "_tx")

    def __init__(self, tx: Tx, of: CapKeys) -> None:
        self._tx = tx
        self._of = of
        self._keys: dict[bytes, KeyRecord] = {}
        self._gone: set[bytes] = set()
        """Entries of `parked` that this transaction has deleted already."""
        self._has_parked = False
        self._left = CAP_MOVED_MAX
        """How many items it still lets go."""

    def __getitem__(self, digest: bytes) -> KeyRecord:
        found = self._keys.get(digest)
        if found is None:
            self.read([digest])
            found = self._keys[digest]
        return found

    def read(self, digests: Iterable[bytes]) -> None:
        """Read the records of many keys at once. Whatever was read is looked at in the end."""
        missing = [each for each in dict.fromkeys(digests) if each and each not in self._keys]
        if not missing:
            return
        tx, rate = self._tx, self._of.rate
        prefix = tx.prefix
        stored = tx.store.get_many(Family.CAP_KEYS, [prefix + each for each in missing])
        for digest, value in zip(missing, stored, strict=True):
            key = self._keys[digest] = KeyRecord(value)
            # Without a rate nothing is spent any more.
            key.full_at_us = 0 if rate is None else rate.within(key.full_at_us, tx.now_ms)

    def is_due(self, digest: bytes, at_ms: int) -> None:
        """The entry of that time in `cap_due` has done its work."""
        key = self[digest]
        invariant(key.due_ms == at_ms, "I22", queue=self._tx.queue.name, key=digest.hex())
        self._drop_due(digest, key)

    def free(self, digest: bytes, *, has_token: bool = False) -> None:
        """A slot of the key is given back."""
        key = self[digest]
        invariant(key.slots > 0, "I22", queue=self._tx.queue.name, key=digest.hex())
        key.slots -= 1
        key.tokens -= has_token
        self._tx.counters.slots -= 1

    def park(self, entries: Sequence[tuple[bytes, Entry]]) -> None:
        """Store items that are parked now, each with its key, which counts them already."""
        tx = self._tx
        marked = [(digest, _parked(entry)) for digest, entry in entries]
        keys = [_parked_key(tx.prefix, digest, entry) for digest, entry in marked]
        self._has_parked = True
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

    # --- the end of the transaction ---------------------------------------------------------------

    def write(self) -> None:
        """Let go whom slots and tokens allow, and write the records."""
        now_ms = self._tx.now_ms
        for digest, key in self._keys.items():
            self._of.take_tokens(key, now_ms)
            if key.parked and (count := min(self._of.room(key, now_ms), key.parked, self._left)):
                self._let_go(digest, key, count)
            self._write_key(digest, key)

    def _let_go(self, digest: bytes, key: KeyRecord, count: int) -> None:
        tx = self._tx
        head = tx.prefix + digest
        # What was deleted or parked by this very transaction is not in the store as it says.
        most = count + len(self._gone)
        stored = tx.store.scan(Family.PARKED, head, head + _AFTER_ANY_ENTRY, most)
        chosen = [entry_key for entry_key, _ in stored if entry_key not in self._gone][:count]
        # Otherwise the sweeper would look at the key again and again.
        is_sound = bool(chosen) or self._has_parked
        invariant(is_sound, "I22", queue=tx.queue.name, key=digest.hex(), parked=key.parked)
        places = [tx.prefix + entry_key[PREFIX_BYTES + DIGEST_BYTES :] for entry_key in chosen]
        has_rate = self._of.rate is not None
        ready: list[Entry] = []
        for place, value in zip(
            places, tx.store.get_many(Family.VISIBILITY_INDEX, places), strict=True
        ):
            invariant(value is not None, "I22", queue=tx.queue.name, entry=place.hex())
            entry = decode_entry(place[PREFIX_BYTES + LEVEL_BYTES :], value or b"")
            tx.queue.ready.take_some(tx, place[PREFIX_BYTES], entry, [])
            self.unpark(digest, entry)
            due, run = entry
            mark = with_token(run.mark) if has_rate else with_slot(run.mark)
            ready.append((due, run._replace(mark=mark)))
        if ready:
            tx.queue.ready.put(tx, sorted(ready))
            key.slots += len(ready)
            key.tokens += len(ready) if has_rate else 0
            tx.counters.slots += len(ready)
            self._left -= len(ready)

    def _write_key(self, digest: bytes, key: KeyRecord) -> None:
        tx = self._tx
        due_ms = self._of.due_ms(key, tx.now_ms)
        if not key.slots and not key.parked and due_ms == NEVER_MS:
            self._drop_due(digest, key)
            if key.stored is not None:
                tx.batch.delete(Family.CAP_KEYS, tx.prefix + digest)
            return
        # An entry that is too early stays: so a key in use costs a write here only once in a while.
        if due_ms < (key.due_ms or NEVER_MS):
            self._drop_due(digest, key)
            self._put_due(digest, key, due_ms)
        encoded = key.encode()
        if encoded != key.stored:
            tx.batch.put(Family.CAP_KEYS, tx.prefix + digest, encoded)

    def _put_due(self, digest: bytes, key: KeyRecord, due_ms: int) -> None:
        tx = self._tx
        tx.batch.put(Family.CAP_DUE, tx.prefix + due_part(due_ms, digest), b"")
        key.due_ms = due_ms
        tx.counters.cap_dues += 1
        tx.counters.cap_due_ms = min(tx.counters.cap_due_ms, due_ms)
        tx.due(due_ms)

    def _drop_due(self, digest: bytes, key: KeyRecord) -> None:
        if key.due_ms:
            tx = self._tx
            tx.batch.delete(Family.CAP_DUE, tx.prefix + due_part(key.due_ms, digest))
            key.due_ms = 0
            tx.counters.cap_dues -= 1
            if not tx.counters.cap_dues:
                tx.counters.cap_due_ms = NEVER_MS


def _parked(entry: Entry) -> Entry:
    due, run = entry
    return due, run._replace(mark=parked(run.mark))


def _parked_key(prefix: bytes, digest: bytes, entry: Entry) -> bytes:
    due, run = entry
    return prefix + digest + level_part(mark_level(run.mark)) + due


# --- items leave, in whatever way -----------------------------------------------------------------


def keys_of(tx: Tx) -> CapKeys | None:
    caps = tx.queue.caps
    return None if caps is None else caps.keys


def free_slots(tx: Tx, runs: list[Run]) -> list[Run]:
    """Items have left their leases: the same without slots, which others may have now."""
    keys = keys_of(tx)
    if keys is None:
        return runs
    blocks = tx.queue.blocks.reader()
    return [_free(tx, keys, run, blocks) for run in runs]


def _free(tx: Tx, keys: CapKeys, run: Run, blocks: Any) -> Run:
    if not mark_holds_slot(run.mark):
        return run
    changes = key_changes(tx, keys)
    digests = keys.of(run, blocks)
    changes.read(digests)
    has_token = mark_has_token(run.mark)
    for digest in digests:
        changes.free(digest, has_token=has_token)
    return run._replace(mark=without_slot(run.mark))


def leave_ready(tx: Tx, due: bytes, runs: Sequence[Run]) -> None:
    """Ready items are gone, which may have been parked or held slots; `due` is that of their
    entry."""
    keys = keys_of(tx)
    if keys is None:
        return
    blocks = tx.queue.blocks.reader()
    for run in runs:
        if mark_is_parked(run.mark):
            (digest,) = keys.of(run, blocks)  # it is alone
            key_changes(tx, keys).unpark(digest, at_time_of(due, run))
        else:
            _free(tx, keys, run, blocks)
