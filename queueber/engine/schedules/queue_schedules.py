"""The schedules of one queue: which is due first, and its run."""

from heapq import heapify, heappop, heappush
from typing import Any

from queueber.db.families import Family
from queueber.db.records.keys import NEVER_MS
from queueber.db.records.schedules import (
    ScheduleRecord,
    decode_schedule,
    encode_schedule,
    schedule_key,
)
from queueber.engine.kernel.due_scan import Done
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.queue.add import add
from queueber.engine.queue.queue_state import QueueState, QueueTx
from queueber.engine.schedules.due_runs import due_runs
from queueber.errors import QueueberError, invariant
from queueber.limits import SCHEDULE_RETRY_MS
from queueber.model import NO_OPTIONS, NewItems, Schedule, run_attributes

_LATE_DELETIONS_MAX = 100


class Entry:
    """What memory has of a schedule."""

    __slots__ = ("due_ms", "problem")

    def __init__(self, due_ms: int) -> None:
        self.due_ms = due_ms
        """When to look at it: at its next run, or when a refused one is tried again."""
        self.problem = ""


class QueueSchedules:
    """See `Scheduled`. The heap has late deletion: an entry counts while it has its time."""

    def __init__(self, queue: QueueState) -> None:
        self._queue = queue
        self.entries: dict[str, Entry] = {}
        self._heap: list[tuple[int, str]] = []

    # --- memory -----------------------------------------------------------------------------------

    def set(self, name: str, next_at_ms: int) -> None:
        """The schedule is new, has changed or has run; 0: it is not due."""
        self._look_at(name, Entry(next_at_ms or NEVER_MS))

    def _look_at(self, name: str, entry: Entry) -> None:
        self.entries[name] = entry
        if entry.due_ms == NEVER_MS:
            return
        if len(self._heap) > 2 * len(self.entries) + _LATE_DELETIONS_MAX:
            self._heap = [(each.due_ms, known) for known, each in self.entries.items()]
            heapify(self._heap)
        else:
            heappush(self._heap, (entry.due_ms, name))

    def drop(self, name: str) -> None:
        del self.entries[name]

    def due_ms(self) -> int:
        heap = self._heap
        while heap:
            at_ms, name = heap[0]
            entry = self.entries.get(name)
            if entry is not None and entry.due_ms == at_ms:
                return at_ms
            heappop(heap)
        return NEVER_MS

    # --- the store --------------------------------------------------------------------------------

    def read(self, tx: Transaction[Any], name: str) -> ScheduleRecord:
        value = tx.store.get(Family.SCHEDULES, schedule_key(self._queue.queue_id, name))
        invariant(value is not None, "I21", schedule=name)
        return decode_schedule(name, self._queue.name, value or b"")

    def save(self, tx: Transaction[Any], record: ScheduleRecord) -> None:
        name, queue = record.schedule.name, self._queue
        tx.batch.put(Family.SCHEDULES, schedule_key(queue.queue_id, name), encode_schedule(record))
        tx.after_write(self.set, name, record.next_at_ms)
        tx.look_at(queue, record.next_at_ms or NEVER_MS)

    # --- runs -------------------------------------------------------------------------------------

    def run_due(self, tx: QueueTx) -> Done:
        """One schedule a transaction, so that one whose item is refused holds up no other."""
        name = self._heap[0][1]  # `due_ms` was asked before, and has put it there
        record = self.read(tx, name)
        try:
            runs = due_runs(record.schedule, record.next_at_ms, tx.now_ms)
            if runs.at_ms:
                add(tx, _items(record.schedule, runs.at_ms))
        except QueueberError as error:
            # The queue is full, or the zone is unknown to this server. Nothing was written.
            entry = Entry(tx.now_ms + SCHEDULE_RETRY_MS)
            entry.problem = str(error)
            self._look_at(name, entry)
            return Done(0)
        last_at_ms = runs.at_ms[-1] if runs.at_ms else record.last_at_ms
        self.save(
            tx,
            record._replace(
                next_at_ms=runs.next_at_ms,
                last_at_ms=last_at_ms,
                runs=record.runs + len(runs.at_ms),
            ),
        )
        return Done(len(runs.at_ms))

    def run_now(self, tx: QueueTx, name: str) -> bytes:
        """Add an item whatever the time, also of a paused one. Its next time stays."""
        record = self.read(tx, name)
        (item_id,) = add(tx, _items(record.schedule, [tx.now_ms])).ids
        self.save(tx, record._replace(runs=record.runs + 1))
        return item_id


def _items(schedule: Schedule, at_ms: list[int]) -> NewItems:
    return NewItems(
        [schedule.contents] * len(at_ms),
        priorities=[schedule.priority] * len(at_ms),
        attributes=[
            {**schedule.attributes, **run_attributes(schedule.name, each)} for each in at_ms
        ],
        options=[schedule.options] * len(at_ms) if schedule.options != NO_OPTIONS else (),
    )
