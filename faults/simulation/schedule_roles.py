"""Schedules in the simulation: one that nobody touches, and one that a caller changes all the time.

Nobody polls their queue, so that at the end it has every item that they have ever added.
"""

from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Any

from faults.simulation.contact import Contact
from faults.simulation.network import ConnectionLost
from queueber.model import ItemOptions, Missed, Schedule, Stored
from queueber.service.service import Service
from queueber.service.session import Session

TICKING = "ticking"
"""The queue that they add to."""
STEADY = Schedule(
    "steady", "@every 25ms", TICKING, missed=Missed.ALL, options=ItemOptions(3, (50,), 7000)
)
TOUCHED = "touched"
_WHENS = ("@every 10ms", "@every 40ms")


@dataclass
class Touched:
    """What the caller knows of its schedule."""

    may_be: set[str] = field(default_factory=lambda: {"absent"})
    """Whether it is absent, paused or running; several, if an answer was lost."""
    runs: set[bytes] = field(default_factory=set)
    """Items that it had added, and was told of."""
    lost_runs: int = 0
    """Calls that may have added an item."""
    removals: int = 0
    """Calls that may have removed it."""


_AFTER = {
    "put_schedule": {"absent": "running", "paused": "paused", "running": "running"},
    "pause_schedule": {"absent": "absent", "paused": "paused", "running": "paused"},
    "resume_schedule": {"absent": "absent", "paused": "running", "running": "running"},
    "remove_schedule": {"absent": "absent", "paused": "absent", "running": "absent"},
    "run_schedule": {"absent": "absent", "paused": "paused", "running": "running"},
}


class ScheduleCaller(Contact):
    def _target(self, service: Service, session: Session) -> Any:
        return session

    async def act(self, operation: str, known: Touched) -> None:
        after = {_AFTER[operation][each] for each in known.may_be}
        try:
            answer = await self.call(operation, {}, self._ask(operation), _told)
        except ConnectionLost:
            known.may_be |= after
            known.lost_runs += operation == "run_schedule"
            known.removals += operation == "remove_schedule"
            raise
        if answer is None:
            return  # there is none, or the disk is full
        known.may_be = after
        if operation == "run_schedule":
            known.runs.add(answer)
        known.removals += operation == "remove_schedule" and bool(answer)

    def _ask(self, operation: str) -> Any:
        schedule = Schedule(
            TOUCHED,
            self.random.choice(_WHENS),
            TICKING,
            missed=self.random.choice(list(Missed)),
        )

        def ask(service: Service, session: Session) -> Awaitable[Any]:
            schedules = service.schedules
            match operation:
                case "put_schedule":
                    return schedules.put(schedule, session)
                case "pause_schedule":
                    return schedules.pause(TOUCHED, session)
                case "resume_schedule":
                    return schedules.resume(TOUCHED, session)
                case "run_schedule":
                    return schedules.run_now(TOUCHED, session)
                case _:
                    return schedules.remove(TOUCHED, session)

        return ask


def _told(answer: Stored | bool | bytes) -> dict[str, Any]:
    return {"answer": answer.hex() if isinstance(answer, bytes) else answer}


async def reschedule(caller: ScheduleCaller, known: Touched) -> None:
    while not caller.rumours.is_over:
        await caller.sleep_ms(caller.random.choice([5, 20, 50]))
        try:
            await caller.act(caller.random.choice([*_AFTER, "put_schedule"]), known)
        except ConnectionLost:
            continue
