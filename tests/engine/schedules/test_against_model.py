"""Schedules against a model of plain dictionaries, with restarts, crashes and lost writes."""

import os
from collections import Counter
from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from queueber.db.store.rocks import RocksStore
from queueber.engine.integrity.check_store import check_store
from queueber.engine.open import open_engine
from queueber.errors import Unavailable
from queueber.ids import IdSource
from queueber.model import NO_OPTIONS, ItemOptions, Missed, QueueSettings, Schedule
from tests.support.folders import copy_open_store, quick_folder, remove_folder
from tests.support.operations import create_queue, delete_queue, sweep
from tests.support.rig import START_MS, refuse_write
from tests.support.schedule_model import EVERY, MINUTE_MS, MINUTES, ModelSchedules
from tests.support.schedules import (
    pause_schedule,
    put_schedule,
    remove_schedule,
    resume_schedule,
    run_schedule,
    runs_with_options_in,
)

pytestmark = pytest.mark.slow

QUEUES = ("q", "r")
EXAMPLES = int(os.environ.get("QUEUEBER_TEST_EXAMPLES", "40"))
names = st.sampled_from(["a", "b", "c"])
schedules = st.builds(
    Schedule,
    names,
    st.sampled_from([*MINUTES, *EVERY]),
    st.sampled_from(QUEUES),
    st.sampled_from([b"", b"x"]),
    missed=st.sampled_from(Missed),
    options=st.sampled_from([NO_OPTIONS, ItemOptions(1, (5,), 9)]),
)


class SchedulesAgainstModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = quick_folder()
        self.generation = 0
        self.now_ms = START_MS
        self.model = ModelSchedules()
        self._open(self.folder / "0")
        for queue in QUEUES:
            create_queue(self.engine, queue, QueueSettings(), self.now_ms)

    def _open(self, path: object) -> None:
        self.store = RocksStore(path)  # type: ignore[arg-type]
        self.engine = open_engine(self.store, IdSource(Random(self.generation)))

    def teardown(self) -> None:
        self.store.close()
        remove_folder(self.folder)

    @rule(schedule=schedules)
    def put(self, schedule: Schedule) -> None:
        expected = self.model.put(schedule, self.now_ms)
        assert put_schedule(self.engine, schedule, self.now_ms) == expected

    @precondition(lambda self: self.model.schedules)
    @rule(data=st.data(), what=st.sampled_from(["pause", "resume", "resume", "run", "remove"]))
    def change(self, data: st.DataObject, what: str) -> None:
        name, now_ms, model = (
            data.draw(st.sampled_from(sorted(self.model.schedules))),
            self.now_ms,
            self.model,
        )
        match what:
            case "pause":
                assert pause_schedule(self.engine, name, now_ms) == model.pause(name)
            case "resume":
                assert resume_schedule(self.engine, name, now_ms) == model.resume(name, now_ms)
            case "run":
                run_schedule(self.engine, name, now_ms)
                model.run_now(name, now_ms)
            case _:
                assert remove_schedule(self.engine, name, now_ms)
                del model.schedules[name]

    @rule(ms=st.sampled_from([1, 9000, MINUTE_MS, 8 * MINUTE_MS, 100 * MINUTE_MS]))
    def time_passes(self, ms: int) -> None:
        self.now_ms += ms
        self._sweep()

    @rule(ms=st.sampled_from([MINUTE_MS, 3 * 60 * MINUTE_MS]), is_crash=st.booleans())
    def server_is_down(self, ms: int, is_crash: bool) -> None:
        self.generation += 1
        path = self.folder / str(self.generation)
        if is_crash:
            copy_open_store(self.folder / str(self.generation - 1), path)
            self.store.close()
        else:
            self.store.close()
            (self.folder / str(self.generation - 1)).rename(path)
        self.now_ms += ms
        self._open(path)
        self._sweep()

    @rule(ms=st.sampled_from([MINUTE_MS, 10 * MINUTE_MS]))
    def disk_is_full(self, ms: int) -> None:
        self.now_ms += ms
        with pytest.MonkeyPatch.context() as fault:
            fault.setattr(self.store, "write", refuse_write)
            try:
                self._sweep_engine()
            except Unavailable:
                self.now_ms += 1000  # the engine tries again after a while
        self._sweep()

    @rule(minutes=st.integers(1, 30))
    def clock_is_set_back(self, minutes: int) -> None:
        self.now_ms -= minutes * MINUTE_MS

    @rule(queue=st.sampled_from(QUEUES))
    def queue_is_deleted(self, queue: str) -> None:
        delete_queue(self.engine, queue)
        create_queue(self.engine, queue, QueueSettings(), self.now_ms)
        self.model.queue_deleted(queue)

    def _sweep(self) -> None:
        self._sweep_engine()
        self.model.sweep(self.now_ms)

    def _sweep_engine(self) -> None:
        while sweep(self.engine, self.now_ms) is not None:
            pass

    @invariant()
    def the_same_runs_were_made(self) -> None:
        for queue in QUEUES:
            found = runs_with_options_in(self.engine, queue)
            assert Counter(found) == Counter(self.model.added.get(queue, []))

    @invariant()
    def the_same_schedules_are_there(self) -> None:
        engine_schedules = self.engine.schedules
        assert engine_schedules.names() == sorted(self.model.schedules)
        for name, known in self.model.schedules.items():
            info = engine_schedules.describe(self.store, name)
            assert info.is_paused == known.is_paused
            assert info.next_at_ms == (0 if known.is_paused else known.next_ms)
            assert (info.last_at_ms, info.runs) == (known.last_ms, known.runs)
            assert info.queue == known.schedule.queue

    @invariant()
    def store_is_sound(self) -> None:
        assert check_store(self.store) == []


TestSchedulesAgainstModel = SchedulesAgainstModel.TestCase
TestSchedulesAgainstModel.settings = settings(
    max_examples=EXAMPLES, stateful_step_count=25, deadline=None
)
