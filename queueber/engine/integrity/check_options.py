"""The check of options: those items have some, and expire, whose marks say so (I23)."""

from collections.abc import Iterator

from queueber.db.families import Family
from queueber.db.records.item_options import decode_options
from queueber.db.records.keys import due_part, split_due_part
from queueber.db.records.runs import mark_expires
from queueber.engine.integrity.queue_entries import CheckedQueue, Violation, readable
from queueber.engine.integrity.states import StateRun


class OptionsCheck:
    """Sees every run whose mark says that its items have options, or expire."""

    def __init__(self, queue: CheckedQueue) -> None:
        self._queue = queue
        self._entries = queue.entries
        self._items = self._expiring = 0

    def check_run(self, where: str, state: StateRun) -> Iterator[Violation]:
        run = state.run
        expires = mark_expires(run.mark)
        self._items += run.count
        self._expiring += run.count if expires else 0
        if expires and state.due is None:
            yield self._broken(f"{where}, which expire in this state")
        ids = run.ids
        stored = self._entries.get_many(Family.ITEM_OPTIONS, ids)
        for item_id, value in zip(ids, stored, strict=True):
            options = None if value is None else readable(decode_options, value)
            if value is None:
                yield self._broken(f"{where} with options, but there are none of {item_id.hex()}")
            elif options is None:
                yield self._queue.broken("I7", f"the options of {item_id.hex()} cannot be read")
            elif expires:
                due = due_part(options.expires_at_ms, item_id)
                if self._entries.get(Family.ITEM_EXPIRY, due) is None:
                    yield self._broken(f"item_expiry misses {due.hex()}")

    def check_sums(self) -> Iterator[Violation]:
        found = self._entries.count(Family.ITEM_OPTIONS)
        if found != self._items:
            yield self._broken(f"{found} items have options, but {self._items} marks say so")
        found = 0
        for due, _ in self._entries.walk(Family.ITEM_EXPIRY):
            found += 1
            if split_due_part(due)[0] < self._queue.counters.expiry_due_ms:
                text = f"item_expiry has {due.hex()} before its first known entry"
                yield self._queue.broken("I6", text)
        if found != self._expiring:
            yield self._broken(f"{found} items expire, but {self._expiring} marks say so")

    def _broken(self, text: str) -> Violation:
        return self._queue.broken("I23", text)
