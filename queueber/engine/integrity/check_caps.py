"""The check of cap keys: who holds slots and who is parked is what their records say (I22)."""

from collections import Counter
from collections.abc import Iterator

from queueber.db.families import Family
from queueber.db.records.keys import level_part
from queueber.db.records.runs import mark_holds_slot, mark_is_parked, mark_level
from queueber.engine.caps.cap_keys import CapKeys, decode_cap_key
from queueber.engine.integrity.queue_entries import CheckedQueue, Violation
from queueber.engine.integrity.states import StateRun, read_states
from queueber.engine.queue.blocks import BlockReader
from queueber.model import QueueSettings

_FAMILIES = (Family.VISIBILITY_INDEX, Family.DELAYED, Family.LEASES, Family.DEAD)


def check_caps(queue: CheckedQueue, settings: QueueSettings) -> Iterator[Violation]:
    """Of a queue that has neither slots nor parked items, only that it has no records either."""
    yield from CapsCheck(queue, settings).run()


class CapsCheck:
    def __init__(self, queue: CheckedQueue, settings: QueueSettings) -> None:
        self._queue = queue
        self._entries = queue.entries
        self._limit = settings.cap_by_concurrency_max
        self._keys = CapKeys(settings.cap_by, self._limit)
        self._slots: Counter[bytes] = Counter()
        self._parked: Counter[bytes] = Counter()

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
        elif run.count != 1 or state.family is not Family.VISIBILITY_INDEX or state.due is None:
            yield self._broken(f"{where}, which cannot be parked")
        else:
            self._parked.update(digests)
            place = digests[0] + level_part(mark_level(run.mark)) + state.due
            if self._entries.get(Family.PARKED, place) is None:
                yield self._broken(f"{where}, which is not in parked")

    def _check_records(self) -> Iterator[Violation]:
        for digest, value in self._entries.walk(Family.CAP_KEYS):
            kept = decode_cap_key(value)
            counted = self._slots.pop(digest, 0), self._parked.pop(digest, 0)
            if kept != counted or kept == (0, 0):
                yield self._broken(f"{digest.hex()} has {counted}, but its record says {kept}")
            has_room = not self._limit or kept[0] < self._limit
            if kept[1] and has_room and not self._queue.counters.caps_to_review:
                yield self._broken(f"items of {digest.hex()} wait, though it has room: {kept}")
        for digest in self._slots | self._parked:
            yield self._broken(f"{digest.hex()} has no record")
