"""Noted times: when to look at which topic or group, as the store knows it.

There may be a million topics, of which few are in memory. So the family `agenda` says when each is
to be looked at. It says so to within `AGENDA_SLACK_MS`: while a topic is in memory, the kernel's
agenda has the exact time, and a busy topic costs a write here once a minute and not with each call.
After a crash a topic that nobody uses may be looked at so much later.
"""

from typing import Any

from queueber.db.families import Family
from queueber.db.records.keys import NEVER_MS, queue_prefix, split_queue_prefix
from queueber.db.records.topics import (
    AGENDA_END,
    agenda_key,
    agenda_time_key,
    split_agenda_time_key,
)
from queueber.db.store.contract import ScanIncomplete, Store
from queueber.engine.kernel.transaction import Transaction
from queueber.ids import QueueId
from queueber.limits import AGENDA_SLACK_MS, LOOKAHEAD_RETRY_MS, LOOKAHEAD_SKIPS_MAX

Due = tuple[int, QueueId, QueueId]
"""A time, a topic or group that is to be looked at then, and its topic."""


class NotedTimes:
    """The family `agenda`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._low_ms = 0
        """No entry is earlier."""
        self._next_ms = 0
        """When to look here next."""

    def next_ms(self, now_ms: int) -> int:
        """When the first of them is to be looked at; `NEVER_MS`: there is none."""
        if self._next_ms <= now_ms:
            self._look_ahead(now_ms)
        return self._next_ms

    def _look_ahead(self, now_ms: int) -> None:
        start = agenda_time_key(self._low_ms)
        try:
            key = self._store.first_key(
                Family.AGENDA, start, AGENDA_END, skips_max=LOOKAHEAD_SKIPS_MAX
            )
        except ScanIncomplete:
            self._next_ms = now_ms + LOOKAHEAD_RETRY_MS
            return
        self._next_ms = NEVER_MS if key is None else split_agenda_time_key(key)[0]
        if key is not None:
            self._low_ms = self._next_ms

    def due(self, now_ms: int, limit: int) -> list[Due]:
        """Up to `limit` of those that are to be looked at by now."""
        if self.next_ms(now_ms) > now_ms:
            return []
        start, stop = agenda_time_key(self._low_ms), agenda_time_key(now_ms + 1)
        found = self._store.scan(Family.AGENDA, start, stop, limit)
        return [(*split_agenda_time_key(key), split_queue_prefix(topic)) for key, topic in found]

    def forget(self, tx: Transaction[Any], at_ms: int, number: QueueId) -> None:
        """Delete an entry, whether or not what it names still exists."""
        tx.batch.delete(Family.AGENDA, agenda_time_key(at_ms, number))
        tx.batch.delete(Family.AGENDA, agenda_key(number))

    def added(self, at_ms: int) -> None:
        self._next_ms = min(self._next_ms, at_ms)
        self._low_ms = min(self._low_ms, at_ms)


class NotedTime:
    """What is noted of one topic or group."""

    __slots__ = ("_number", "_times", "_topic", "at_ms")

    def __init__(
        self, times: NotedTimes, store: Store | None, number: QueueId, topic: QueueId
    ) -> None:
        """A group is found through its `topic`; for a topic the two numbers are the same. Without a
        `store` it is new, and nothing is noted."""
        self._times = times
        self._number = number
        self._topic = topic
        stored = store.get(Family.AGENDA, agenda_key(number)) if store else None
        self.at_ms = NEVER_MS if stored is None else int.from_bytes(stored)

    def note(self, tx: Transaction[Any], at_ms: int) -> None:
        """Look at it at `at_ms`, or up to `AGENDA_SLACK_MS` later."""
        noted_ms = tx.pending.get(self, self.at_ms)
        wanted_ms = max(at_ms, tx.now_ms + AGENDA_SLACK_MS)
        if wanted_ms < noted_ms:
            self._delete_entry(tx, noted_ms)
            number, batch = self._number, tx.batch
            batch.put(Family.AGENDA, agenda_key(number), wanted_ms.to_bytes(8))
            batch.put(Family.AGENDA, agenda_time_key(wanted_ms, number), queue_prefix(self._topic))
            self._replace(tx, wanted_ms)

    def clear(self, tx: Transaction[Any]) -> None:
        """Note nothing: it is gone, or is being looked at now."""
        noted_ms = tx.pending.get(self, self.at_ms)
        if noted_ms < NEVER_MS:
            self._delete_entry(tx, noted_ms)
            tx.batch.delete(Family.AGENDA, agenda_key(self._number))
            self._replace(tx, NEVER_MS)

    def _delete_entry(self, tx: Transaction[Any], noted_ms: int) -> None:
        if noted_ms < NEVER_MS:
            tx.batch.delete(Family.AGENDA, agenda_time_key(noted_ms, self._number))

    def _replace(self, tx: Transaction[Any], at_ms: int) -> None:
        tx.pending[self] = at_ms
        tx.after_write(self._written, at_ms)

    def _written(self, at_ms: int) -> None:
        self.at_ms = at_ms
        if at_ms < NEVER_MS:
            self._times.added(at_ms)
