"""Bugs of schedules that are planted on purpose: the simulation must find each of them."""

from typing import Any

from queueber.db.records.schedules import ScheduleRecord
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.schedules import due_runs
from queueber.engine.schedules.queue_schedules import QueueSchedules
from tests.faults.planted_bugs import Bug, Patch


def move_on_in_a_second_write(patch: Patch) -> None:
    save = QueueSchedules.save

    def later(schedules: QueueSchedules, tx: Any, record: ScheduleRecord) -> None:
        if tx.queue is None:
            save(schedules, tx, record)
        else:
            tx.after_write(second, schedules, tx._kernel, tx.now_ms, record)

    def second(schedules: QueueSchedules, kernel: Any, now_ms: int, record: ScheduleRecord) -> None:
        tx = Transaction(kernel, now_ms, None)
        save(schedules, tx, record)
        tx.commit()

    patch.setattr(QueueSchedules, "save", later)


def move_on_without_the_runs_that_are_too_many_for_one_write(patch: Patch) -> None:
    find = due_runs.due_runs

    def hasty(schedule: Any, next_at_ms: int, now_ms: int) -> due_runs.DueRuns:
        found = find(schedule, next_at_ms, now_ms)
        return found._replace(next_at_ms=due_runs.next_run_ms(schedule, now_ms))

    patch.setattr("queueber.engine.schedules.queue_schedules.due_runs", hasty)


def forget_that_it_is_paused(patch: Patch) -> None:
    save = QueueSchedules.save

    def running(schedules: QueueSchedules, tx: Any, record: ScheduleRecord) -> None:
        save(schedules, tx, record._replace(is_paused=False))

    patch.setattr(QueueSchedules, "save", running)


def store_nothing_of_what_its_items_have_of_their_own(patch: Patch) -> None:
    patch.setattr("queueber.db.records.schedules.encode_future_options", lambda _: b"")


SCHEDULE_BUGS: tuple[Bug, ...] = (
    store_nothing_of_what_its_items_have_of_their_own,
    move_on_in_a_second_write,
    move_on_without_the_runs_that_are_too_many_for_one_write,
    forget_that_it_is_paused,
)
