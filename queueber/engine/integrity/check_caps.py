"""The check of cap keys: who holds slots and who is parked is what their records say (I22)."""

from collections import Counter
from collections.abc import Iterator

from queueber.db.families import Family
from queueber.db.records.keys import due_part, level_part, split_due_part
from queueber.db.records.runs import mark_has_token, mark_holds_slot, mark_is_parked, mark_level
from queueber.engine.caps.cap_keys import CapKeys, KeyRecord
from queueber.engine.integrity.queue_entries import CheckedQueue, Violation
from queueber.engine.integrity.states import StateRun, read_states
from queueber.engine.queue.blocks import BlockReader
from queueber.model import QueueSettings

_FAMILIES = (Family.VISIBILITY_INDEX, Family.DELAYED, Family.LEASES, Family.DEAD)


def check_caps(queue: CheckedQueue, settings: QueueSettings) -> Iterator[Violation]:
    """Of a queue that has neither slots nor parked items, only that its records say so."""
    yield from CapsCheck(queue, settings).run()


class CapsCheck:
    def __init__(self, queue: CheckedQueue, settings: QueueSettings) -> None:
        self._queue = queue
        self._entries = queue.entries
        self._limit = settings.cap_by_concurrency_max
        self._rate_items = settings.cap_by_rate_items
        self._keys = CapKeys(settings.cap_by, self._limit)
        self._slots: Counter[bytes] = Counter()
        self._parked: Counter[bytes] = Counter()
        self._tokens: Counter[bytes] = Counter()

    def run(self) -> Iterator[Violation]:
        counters = self._queue.counters
        if counters.slots or counters.parked:
            for family in _FAMILIES:
                for key, value in self._entries.walk(family):
                    for state in read_states(family, key, value):
                        yield from self._check_run(state)
        found, waiting = self._entries.count(Family.PARKED), self._parked.total()
        if found != waiting:
            yield self._broken(f"{found} entries in parked, but {waiting} items are")
        yield from self._check_records()

    def _broken(self, text: str) -> Violation:
        return self._queue.broken("I22", text)

    def _check_run(self, state: StateRun) -> Iterator[Violation]:
        run = state.run
        is_parked = mark_is_parked(run.mark)
        if not is_parked and not mark_holds_slot(run.mark):
            return
        where = f"{state.family.family_name} has {run.last.hex()}"
        digests = self._keys.of(run, BlockReader(self._entries.store, self._entries.prefix))
        if not all(digests):
            yield self._broken(f"{where}, which has no cap key")
        elif not is_parked:
            self._slots.update(digests)
            if mark_has_token(run.mark):
                self._tokens.update(digests)
                if state.family is not Family.VISIBILITY_INDEX:
                    yield self._broken(f"{where}, for which no token can be set aside")
        elif run.count != 1 or state.family is not Family.VISIBILITY_INDEX or state.due is None:
            yield self._broken(f"{where}, which cannot be parked")
        else:
            self._parked.update(digests)
            place = digests[0] + level_part(mark_level(run.mark)) + state.due
            if self._entries.get(Family.PARKED, place) is None:
                yield self._broken(f"{where}, which is not in parked")

    def _check_records(self) -> Iterator[Violation]:
        dues = 0
        for digest, value in self._entries.walk(Family.CAP_KEYS):
            key = KeyRecord(value)
            kept = key.slots, key.parked, key.tokens
            counted = tuple(
                each.pop(digest, 0) for each in (self._slots, self._parked, self._tokens)
            )
            if kept != counted or (kept == (0, 0, 0) and not key.due_ms):
                yield self._broken(f"{digest.hex()} has {counted}, but its record says {kept}")
            if key.parked and not self._is_to_be_looked_at(key):
                yield self._broken(f"items of {digest.hex()} wait, though it has room: {kept}")
            if key.due_ms:
                dues += 1
                if self._entries.get(Family.CAP_DUE, due_part(key.due_ms, digest)) is None:
                    yield self._broken(f"{digest.hex()} is not in cap_due, at {key.due_ms}")
        for digest in self._slots | self._parked:
            yield self._broken(f"{digest.hex()} has no record")
        yield from self._check_dues(dues)

    def _is_to_be_looked_at(self, key: KeyRecord) -> bool:
        """Whether somebody will look at a key with parked items: whoever gives back a slot, or
        leases an item that was let go; or the sweeper."""
        if self._limit and key.slots >= self._limit:
            return True
        if self._rate_items and key.tokens >= self._rate_items:
            return True
        return bool(key.due_ms or self._queue.counters.caps_to_review)

    def _check_dues(self, expected: int) -> Iterator[Violation]:
        counters = self._queue.counters
        found = 0
        for due, _ in self._entries.walk(Family.CAP_DUE):
            found += 1
            if split_due_part(due)[0] < counters.cap_due_ms:
                yield self._broken(f"cap_due has {due.hex()} before its first known entry")
        if not found == expected == counters.cap_dues:
            text = f"{found} entries in cap_due, {expected} in records, {counters.cap_dues} counted"
            yield self._broken(text)
