"""Schedules: create, change, pause, run and remove them.

A schedule belongs to its queue and is deleted with it. Its name is its own in the whole server, so
that a program that moves one to another queue does not have two of them.
"""

from dataclasses import fields
from typing import Any

from queueber.db.families import Family
from queueber.db.records.schedules import (
    ScheduleRecord,
    decode_schedule,
    schedule_key,
    split_schedule_key,
)
from queueber.db.store.contract import Store
from queueber.engine.kernel.transaction import Kernel, Transaction
from queueber.engine.queue.add import check_contents
from queueber.engine.queue.queue_state import QueueState, QueueTx, unreadable_queue
from queueber.engine.queue.queues import Queues
from queueber.engine.schedules.due_runs import next_run_ms
from queueber.engine.schedules.queue_schedules import QueueSchedules
from queueber.errors import InvalidArgument, NotFound, ResourceExhausted
from queueber.ids import QueueId
from queueber.limits import SCHEDULE_NAME_CHARS_MAX, SCHEDULES_MAX
from queueber.model import Schedule, ScheduleInfo, Stored

_LAST_KEY = b"\xff" * (4 + SCHEDULE_NAME_CHARS_MAX + 1)


class Schedules:
    """All schedules of a store."""

    def __init__(self, kernel: Kernel, queues: Queues) -> None:
        self._kernel = kernel
        self._queues = queues
        self._by_name: dict[str, tuple[QueueState, QueueSchedules]] = {}
        self._of_queue: dict[QueueId, QueueSchedules] = {}
        queues.register(lambda _: None, self._queue_deleted)

    def read(self, store: Store) -> None:
        """Take in which schedules there are, and when each is due."""
        for key, value in store.walk(Family.SCHEDULES, b"", _LAST_KEY):
            queue_id = QueueId(int.from_bytes(key[:4]))
            try:
                _, name = split_schedule_key(key)
                queue = self._queues.by_id[queue_id]
                record = decode_schedule(name, queue.name, value)
            except Exception as error:
                raise unreadable_queue(queue_id) from error
            schedules = self._schedules_of(queue)
            schedules.set(name, record.next_at_ms)
            self._follow(name, queue, schedules)
            self._kernel.agenda.schedule(queue_id, schedules.due_ms())

    # --- asking -----------------------------------------------------------------------------------

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def queue_of(self, name: str) -> QueueState:
        return self._get(name)[0]

    def names(self) -> list[str]:
        """In order."""
        return sorted(self._by_name)

    def describe(self, store: Store, name: str) -> ScheduleInfo:
        queue, schedules = self._get(name)
        record = self._record(store, queue, name)
        schedule = record.schedule
        return ScheduleInfo(
            **{each.name: getattr(schedule, each.name) for each in fields(Schedule)},
            contents_bytes=len(schedule.contents),
            created_at_ms=record.created_at_ms,
            next_at_ms=record.next_at_ms,
            last_at_ms=record.last_at_ms,
            runs=record.runs,
            is_paused=record.is_paused,
            problem=schedules.entries[name].problem,
        )

    def _get(self, name: str) -> tuple[QueueState, QueueSchedules]:
        found = self._by_name.get(name)
        if found is None:
            raise NotFound(f"there is no schedule {name!r}; create it, or check the name")
        return found

    def _record(self, store: Store, queue: QueueState, name: str) -> ScheduleRecord:
        value = store.get(Family.SCHEDULES, schedule_key(queue.queue_id, name))
        return decode_schedule(name, queue.name, value or b"")

    # --- changing ---------------------------------------------------------------------------------

    def put(self, tx: Transaction[Any], schedule: Schedule) -> Stored:
        """Create the schedule, or change it. With the same expression and zone its next time stays,
        so that a run that is due is not lost."""
        queue = self._queues.get(schedule.queue)
        check_contents(queue, [schedule.contents])
        name = schedule.name
        known = self._by_name.get(name)
        old = None if known is None else self._record(tx.store, known[0], name)
        # The clock may have been set back since the last run.
        after_ms = tx.now_ms if old is None else max(tx.now_ms, old.last_at_ms)
        next_at_ms = next_run_ms(schedule, after_ms)
        if not next_at_ms:
            raise InvalidArgument(f"when: {schedule.when!r} has no time to come")
        if known is None or old is None:
            self._check_room()
            self._write(tx, queue, ScheduleRecord(schedule, tx.now_ms, next_at_ms))
            return Stored.CREATED
        if old.schedule == schedule:
            return Stored.UNCHANGED
        if old.is_paused:
            next_at_ms = 0
        elif (old.schedule.when, old.schedule.zone) == (schedule.when, schedule.zone):
            next_at_ms = old.next_at_ms
        if known[0] is not queue:
            self._delete(tx, *known, name)
        self._write(tx, queue, old._replace(schedule=schedule, next_at_ms=next_at_ms))
        return Stored.CHANGED

    def _check_room(self) -> None:
        if len(self._by_name) >= SCHEDULES_MAX:
            raise ResourceExhausted(
                f"the server has {SCHEDULES_MAX} schedules, the limit; remove one first"
            )

    def pause(self, tx: Transaction[Any], name: str) -> bool:
        """Run it no more until it is resumed; False if it was paused."""
        queue, schedules = self._get(name)
        record = self._record(tx.store, queue, name)
        if not record.is_paused:
            schedules.save(tx, record._replace(is_paused=True, next_at_ms=0))
        return not record.is_paused

    def resume(self, tx: Transaction[Any], name: str) -> bool:
        """Run it again, from the next time on; False if it was not paused. What came meanwhile is
        not made up for: somebody wanted it so."""
        queue, schedules = self._get(name)
        record = self._record(tx.store, queue, name)
        if record.is_paused:
            next_at_ms = next_run_ms(record.schedule, max(tx.now_ms, record.last_at_ms))
            schedules.save(tx, record._replace(is_paused=False, next_at_ms=next_at_ms))
        return record.is_paused

    def remove(self, tx: Transaction[Any], name: str) -> bool:
        """False when there is none. Items that it has added stay."""
        known = self._by_name.get(name)
        if known is None:
            return False
        self._delete(tx, *known, name)
        return True

    def run_now(self, tx: QueueTx, name: str) -> bytes:
        """`tx` is of the schedule's queue."""
        return self._get(name)[1].run_now(tx, name)

    def _write(self, tx: Transaction[Any], queue: QueueState, record: ScheduleRecord) -> None:
        schedules = self._schedules_of(queue)
        schedules.save(tx, record)
        tx.after_write(self._follow, record.schedule.name, queue, schedules)

    def _delete(
        self, tx: Transaction[Any], queue: QueueState, schedules: QueueSchedules, name: str
    ) -> None:
        tx.batch.delete(Family.SCHEDULES, schedule_key(queue.queue_id, name))
        tx.after_write(self._gone, queue, schedules, name)

    # --- memory -----------------------------------------------------------------------------------

    def _schedules_of(self, queue: QueueState) -> QueueSchedules:
        return self._of_queue.get(queue.queue_id) or QueueSchedules(queue)

    def _follow(self, name: str, queue: QueueState, schedules: QueueSchedules) -> None:
        self._by_name[name] = queue, schedules
        self._of_queue[queue.queue_id] = queue.schedules = schedules

    def _gone(self, queue: QueueState, schedules: QueueSchedules, name: str) -> None:
        schedules.drop(name)
        del self._by_name[name]
        if not schedules.entries:
            del self._of_queue[queue.queue_id]
            queue.schedules = None

    def _queue_deleted(self, queue: QueueState) -> None:
        schedules = self._of_queue.pop(queue.queue_id, None)
        for name in schedules.entries if schedules is not None else ():
            del self._by_name[name]
