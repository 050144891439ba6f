"""Schedules: create, change, list, pause, run and remove them.

What they add is added by the sweeper, or by whoever polls the queue first.
"""

from collections.abc import Awaitable
from dataclasses import replace

from queueber.auth.roles import Action
from queueber.engine.queue.queue_state import QueueState
from queueber.limits import SCHEDULES_LIST_MAX
from queueber.model import Schedule, ScheduleInfo, Stored
from queueber.service.queues import Queues
from queueber.service.rights import audit, check_right, sees
from queueber.service.session import Session
from queueber.service.shell import Shell
from queueber.service.validate.schedules import check_schedule, check_schedule_name


class Schedules:
    def __init__(self, shell: Shell, queues: Queues) -> None:
        self._shell = shell
        self._queues = queues
        self._schedules = shell.engine.schedules

    def put(self, schedule: Schedule, session: Session) -> Awaitable[Stored]:
        """Create or change a schedule. Its queue is created if there is none."""
        shell, schedules = self._shell, self._schedules
        check_schedule(schedule, shell.limits.item_bytes_max)
        check_right(session, Action.ADMINISTER, "queue", schedule.queue)
        name = schedule.name
        if name in schedules:
            # Whoever moves it to another queue takes it away from the first.
            check_right(session, Action.ADMINISTER, "queue", schedules.queue_of(name).name)
        if schedule.queue not in shell.engine.queues:
            self._queues.create_missing(schedule.queue, session)
        stored = shell.run(None, schedules.put, schedule)
        queue = shell.engine.queues.get(schedule.queue)
        if stored is not Stored.UNCHANGED:
            facts: dict[str, object] = {"schedule": name, "stored": stored.value}
            shell.log(session, "schedule_stored", queue.name, facts)
            audit(session, "putSchedule", "schedule", name)
        shell.after_write(queue)
        return shell.durable(stored)

    def pause(self, name: str, session: Session) -> Awaitable[bool]:
        queue = self._queue(name, session, Action.OPERATE)
        was_running = self._shell.run(None, self._schedules.pause, name)
        return self._done(session, "schedule_paused", "pauseSchedule", queue, name, was_running)

    def resume(self, name: str, session: Session) -> Awaitable[bool]:
        queue = self._queue(name, session, Action.OPERATE)
        was_paused = self._shell.run(None, self._schedules.resume, name)
        return self._done(session, "schedule_resumed", "resumeSchedule", queue, name, was_paused)

    def remove(self, name: str, session: Session) -> Awaitable[bool]:
        """False when there is none."""
        check_schedule_name(name)
        if name not in self._schedules:
            return self._shell.durable(False)
        queue = self._queue(name, session, Action.ADMINISTER)
        removed = self._shell.run(None, self._schedules.remove, name)
        return self._done(session, "schedule_removed", "removeSchedule", queue, name, removed)

    def run_now(self, name: str, session: Session) -> Awaitable[bytes]:
        """Add the item of a schedule; the id of the item."""
        shell, queue = self._shell, self._queue(name, session, Action.OPERATE)
        shell.write_gathered(queue)  # what was added before comes before
        item_id = shell.run(queue, self._schedules.run_now, name)
        shell.log(session, "schedule_run", queue.name, {"schedule": name, "item": item_id.hex()})
        audit(session, "runSchedule", "schedule", name)
        shell.after_write(queue)
        return shell.durable(item_id)

    def describe(self, name: str, session: Session) -> Awaitable[ScheduleInfo]:
        self._queue(name, session, Action.READ)
        return self._shell.durable(self._schedules.describe(self._shell.engine.store, name))

    def page(
        self, after: str, limit: int, session: Session
    ) -> Awaitable[tuple[list[ScheduleInfo], bool]]:
        """The schedules after a name, without contents, and whether there are more."""
        schedules, is_seen = self._schedules, sees(session, "queue")
        names = [
            name
            for name in schedules.names()
            if name > after and (is_seen is None or is_seen(schedules.queue_of(name).name))
        ]
        limit = min(limit, SCHEDULES_LIST_MAX) or SCHEDULES_LIST_MAX
        store = self._shell.engine.store
        found = [replace(schedules.describe(store, each), contents=b"") for each in names[:limit]]
        return self._shell.durable((found, len(names) > limit))

    def _queue(self, name: str, session: Session, action: Action) -> QueueState:
        """The queue of a schedule, if the caller may do this with it."""
        check_schedule_name(name)
        queue = self._schedules.queue_of(name)
        check_right(session, action, "queue", queue.name)
        return queue

    def _done(
        self, session: Session, event: str, act: str, queue: QueueState, name: str, is_done: bool
    ) -> Awaitable[bool]:
        if is_done:
            self._shell.log(session, event, queue.name, {"schedule": name})
            audit(session, act, "schedule", name)
        self._shell.after_write(queue)
        return self._shell.durable(is_done)
