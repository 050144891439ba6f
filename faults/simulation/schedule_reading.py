"""Reads what schedules have added at the end of a simulated history, and checks it."""

from faults.rules.schedules import (
    FoundRun,
    runs_with_options,
    steady_runs,
    touched_runs,
    touched_state,
)
from faults.simulation.reading import items_of, options_of
from faults.simulation.schedule_roles import STEADY, TICKING, TOUCHED, Touched
from faults.simulation.server import Server
from queueber.cron import Every, parse_when
from queueber.limits import STORE_RETRY_MS
from queueber.model import NO_OPTIONS, SCHEDULE_ATTRIBUTE, SCHEDULED_AT_ATTRIBUTE, ItemState


def look_at_schedules(server: Server, touched: Touched) -> list[str]:
    """What is wrong with the schedules."""
    service = server.service
    engine = service.shell.engine
    infos = {
        name: engine.schedules.describe(server.store, name) for name in engine.schedules.names()
    }
    runs = [
        FoundRun(
            each.id,
            each.attributes[SCHEDULE_ATTRIBUTE],
            int(each.attributes[SCHEDULED_AT_ATTRIBUTE]),
            options_of(each),
        )
        for each in items_of(service, server.handle(TICKING), ItemState.READY)
    ]
    if STEADY.name not in infos:
        return ["lost: the schedule that nobody touches"]
    every = parse_when(STEADY.when)
    assert isinstance(every, Every)
    now_ms = service.shell.clock.now_ms()
    late_ms = STORE_RETRY_MS if server.disk.was_full else 0
    return [
        *steady_runs(infos[STEADY.name], runs, every.ms, now_ms, late_ms=late_ms),
        *touched_runs(
            TOUCHED, runs, touched.runs, lost=touched.lost_runs, removals=touched.removals
        ),
        *runs_with_options({STEADY.name: STEADY.options, TOUCHED: NO_OPTIONS}, runs),
        *touched_state(TOUCHED, infos, touched.may_be),
    ]
