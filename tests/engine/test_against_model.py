"""The engine against a model of plain dictionaries, through every operation, crashes included."""

import shutil
from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from queueber.db.store import Store
from queueber.engine.add import add
from queueber.engine.expire import expire_lease
from queueber.engine.extend import extend
from queueber.engine.invariants import check_store
from queueber.engine.poll import poll
from queueber.engine.queues import create_queue, delete_queue, queue_stats
from queueber.engine.remove import remove
from queueber.engine.state import open_engine
from queueber.engine.sweep import sweep
from queueber.ids import IdSource
from queueber.limits import MIB
from queueber.model import QueueSettings
from tests.support.folders import copy_open_store, quick_folder
from tests.support.reference_model import ModelQueue

NAMES = ("default", "other")
name_of_queue = st.sampled_from(NAMES)
few = st.integers(1, 6)
lease_ms = st.integers(1, 300)


class EngineAgainstModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = quick_folder()
        self.generation = 0
        self.random = Random(7)
        self.now_ms = 1_700_000_000_000
        self.models = {name: ModelQueue() for name in NAMES}
        self.past_leases: list[tuple[bytes, list[bytes]]] = [(bytes(16), [bytes(16)])]
        self.newest_id = b""
        # A window of a few entries is refilled and cut far more often than the real one.
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr("queueber.engine.ready_window.READY_WINDOW_ENTRIES", 4)
        self.open(Store(self.folder / "0"))
        for name in NAMES:
            assert create_queue(self.engine, name, QueueSettings(), self.now_ms)

    def open(self, store: Store) -> None:
        self.store = store
        self.engine = open_engine(store, IdSource(self.random))

    def teardown(self) -> None:
        self.patch.undo()
        self.store.close()
        shutil.rmtree(self.folder)

    @rule(
        name=name_of_queue,
        delays_ms=st.lists(st.sampled_from([0, 0, 1, 50, 200]), min_size=1, max_size=6),
    )
    def add(self, name: str, delays_ms: list[int]) -> None:
        contents = [self.random.randbytes(self.random.randrange(40)) for _ in delays_ms]
        ids = add(self.engine, self.engine.queue(name), contents, delays_ms, self.now_ms)
        self.saw_new_ids(ids)
        self.models[name].add(ids, contents, delays_ms, self.now_ms)

    def saw_new_ids(self, ids: list[bytes]) -> None:
        assert ids == sorted(set(ids))
        assert ids[0] > self.newest_id
        self.newest_id = ids[-1]

    @rule(name=name_of_queue, counts=st.lists(few, min_size=1, max_size=3), lease_ms=lease_ms)
    def poll(self, name: str, counts: list[int], lease_ms: int) -> None:
        model = self.models[name]
        answers = poll(
            self.engine,
            self.engine.queue(name),
            counts,
            lease_ms=lease_ms,
            answer_bytes_max=MIB,
            now_ms=self.now_ms,
        )
        assert [list(answer.ids) for answer in answers] == model.expected_poll(counts)
        for answer in answers:
            assert list(answer.contents) == [model.items[i].contents for i in answer.ids]
            assert bool(answer.ids) == bool(answer.lease_id)
            if answer.ids:
                self.saw_new_ids([answer.lease_id])
                model.poll(answer.lease_id, list(answer.ids), self.now_ms + lease_ms)
                self.past_leases.append((answer.lease_id, list(answer.ids)))

    @rule(name=name_of_queue, data=st.data())
    def remove(self, name: str, data: st.DataObject) -> None:
        pairs = [
            (data.draw(st.sampled_from(ids)), lease)
            for lease, ids in data.draw(
                st.lists(st.sampled_from(self.past_leases), min_size=1, max_size=5)
            )
        ]
        ids, leases = zip(*pairs, strict=True)
        removed = remove(self.engine, self.engine.queue(name), ids, leases, self.now_ms)
        assert removed == [self.models[name].remove(i, lease, self.now_ms) for i, lease in pairs]

    @rule(name=name_of_queue, data=st.data(), lease_ms=lease_ms)
    def extend(self, name: str, data: st.DataObject, lease_ms: int) -> None:
        chosen = data.draw(
            st.lists(
                st.sampled_from(self.past_leases), min_size=1, max_size=3, unique_by=lambda x: x[0]
            )
        )
        leases = [lease for lease, _ in chosen]
        durations = [lease_ms + n for n in range(len(leases))]
        extended = extend(self.engine, self.engine.queue(name), leases, durations, self.now_ms)
        assert extended == [
            self.models[name].extend(lease, ms, self.now_ms)
            for lease, ms in zip(leases, durations, strict=True)
        ]

    @rule(name=name_of_queue, data=st.data())
    def hang_up(self, name: str, data: st.DataObject) -> None:
        lease, _ = data.draw(st.sampled_from(self.past_leases))
        moved = expire_lease(self.engine, self.engine.queue(name), lease, self.now_ms)
        assert moved == len(self.models[name].held_by(lease))
        if moved:
            self.models[name].end_lease(lease, self.now_ms)

    @rule(ms=st.integers(1, 250), slice_items=few)
    def time_passes(self, ms: int, slice_items: int) -> None:
        self.now_ms += ms
        if self.engine.agenda.next_ms() > self.now_ms:
            for model in self.models.values():
                assert not any(at <= self.now_ms for at in model.lease_expires_ms.values())
        while sweep(self.engine, self.now_ms, slice_items) is not None:
            pass
        for model in self.models.values():
            model.sweep(self.now_ms)

    @rule(ms=st.integers(1, 400))
    def clock_steps_back(self, ms: int) -> None:
        self.now_ms -= ms

    @rule()
    def crash_and_reopen(self) -> None:
        """What a killed server leaves: the files as they are while the store is open."""
        self.generation += 1
        copy = self.folder / str(self.generation)
        copy_open_store(self.folder / str(self.generation - 1), copy)
        self.store.close()
        shutil.rmtree(self.folder / str(self.generation - 1))
        self.open(Store(copy))

    @precondition(lambda self: self.models["other"].items)
    @rule()
    def delete_and_recreate(self) -> None:
        assert delete_queue(self.engine, "other")
        assert create_queue(self.engine, "other", QueueSettings(), self.now_ms)
        self.models["other"] = ModelQueue()

    @invariant()
    def store_is_sound(self) -> None:
        assert check_store(self.store) == []

    @invariant()
    def statistics_match(self) -> None:
        for name, model in self.models.items():
            stats = queue_stats(
                self.engine, self.engine.queue(name), waiting_polls=0, now_ms=self.now_ms
            )
            ready = model.ready_ids()
            oldest_ms = model.items[ready[0]].visible_at_ms if ready else self.now_ms
            assert (stats.ready, stats.delayed, stats.in_progress, stats.leases) == (
                len(ready),
                model.count("delayed"),
                model.count("held"),
                len(model.lease_expires_ms),
            )
            assert stats.oldest_age_ms == max(0, self.now_ms - oldest_ms)
            assert stats.contents_bytes == sum(len(i.contents) for i in model.items.values())
            assert [
                stats.added_total,
                stats.polled_total,
                stats.removed_total,
                stats.expired_total,
                stats.extended_total,
            ] == list(model.totals.values())


TestEngineAgainstModel = EngineAgainstModel.TestCase
TestEngineAgainstModel.settings = settings(max_examples=150, stateful_step_count=60, deadline=None)
