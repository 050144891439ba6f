"""Loads in the model-based test: begun, staged, aborted, and committed step by step among all else.

Nothing of a load may be seen before the last step of its commit, and then all of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from queueber.db.records.loads import LoadedRecord, LoadRecord, load_digest
from queueber.engine.kernel.transaction import Step, Steps
from queueber.engine.loads.part_check import check_part
from queueber.engine.open import Engine
from queueber.engine.queue.queue_state import QueueState
from queueber.errors import (
    Aborted,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    QueueberError,
    Unavailable,
)
from queueber.ids import range_end
from queueber.limits import MIB
from queueber.model import LoadRef, NewItems, Origin, PartRef, Rows
from tests.support.load_model import ModelCommit, ModelLoad, ModelLoaded, ModelRow
from tests.support.loading import build_part
from tests.support.operations import (
    abort_load,
    add,
    begin_load,
    commit_load,
    find_committed,
    finish_part,
    loads_under_way,
)
from tests.support.reference_model import ModelQueue

LOADS = (
    "begin_load", "stage", "stage", "abort_load", "start_commit", "start_commit", "start_commit",
    "add_with_origin",
)  # fmt: skip
load_refs = st.builds(LoadRef, st.sampled_from(["l", "m"]), st.sampled_from([0, 0, 0, 1]))
part_refs = st.builds(PartRef, st.integers(0, 2), st.sampled_from(["a", "b"]))
load_rows = st.lists(
    st.tuples(
        st.sampled_from([0, 0, 0, -5, 1, 50, 200]),
        st.sampled_from([5, 5, 5, 0, 9]),
        st.sampled_from(["", "", "", "a", "b", "ü", "c", "d"]),
        st.sampled_from([{}, {}, {"a": "", "ö": "b"}]),
    ),
    min_size=1,
    max_size=6,
)


@dataclass
class RunningCommit:
    steps: Steps[LoadedRecord]
    decided: ModelCommit
    has_intent: bool = False


class LoadRules(RuleBasedStateMachine):
    engine: Engine
    models: dict[str, ModelQueue]
    now_ms: int

    def __init__(self) -> None:
        super().__init__()
        self.commits: dict[str, RunningCommit] = {}
        """By queue."""

    def queue(self, name: str) -> QueueState:
        raise NotImplementedError

    def contents(self) -> bytes:
        raise NotImplementedError

    def saw_new_ids(self, ids: list[bytes]) -> None:
        raise NotImplementedError

    def add_items(self, name: str, items: NewItems) -> None:
        raise NotImplementedError

    @rule(name=st.sampled_from(["default", "default", "other"]), data=st.data())
    def load(self, name: str, data: st.DataObject) -> None:
        """Some at once: a load needs many."""
        for _ in range(data.draw(st.integers(1, 4))):
            self.load_step(name, data)

    def load_step(self, name: str, data: st.DataObject) -> None:
        operations = list(LOADS)
        if name in self.commits:
            operations += ["go_on_with_commit"] * len(LOADS)
        elif not self.models[name].loads:
            operations = ["begin_and_stage"] * 5 + ["begin_load", "start_commit"]
        getattr(self, data.draw(st.sampled_from(operations)))(name, data)

    @rule(name=st.sampled_from(["default", "default", "other"]), data=st.data())
    def load_more(self, name: str, data: st.DataObject) -> None:
        """As often again."""
        self.load(name, data)

    def begin_and_stage(self, name: str, data: st.DataObject) -> None:
        self.begin_load(name, data)
        self.stage(name, data)

    # --- staging ----------------------------------------------------------------------------------

    def begin_load(self, name: str, data: st.DataObject) -> None:
        model = self.models[name]
        ref, batch = data.draw(load_refs), data.draw(st.sampled_from(["", "red", "green"]))
        known, loaded = model.loads.get(ref.name), model.loaded.get(ref.name)
        timeout_ms = data.draw(st.sampled_from([150, 500, 2000]))

        def begin() -> LoadRecord | LoadedRecord:
            return begin_load(
                self.engine,
                self.queue(name),
                ref,
                batch=batch,
                timeout_ms=timeout_ms,
                token=b"",
                now_ms=self.now_ms,
            )

        if loaded is not None and loaded.ref.epoch >= ref.epoch:
            begun = begin()
            assert isinstance(begun, LoadedRecord)
            assert_loaded(begun, loaded)
        elif known is not None and known.ref.epoch > ref.epoch:
            with pytest.raises(Aborted, match="somebody else has taken over"):
                begin()
        elif known is not None and known.ref == ref and known.batch != batch:
            with pytest.raises(Aborted, match="adds to batch"):
                begin()
        elif known is not None and known.ref == ref:
            assert isinstance(begin(), LoadRecord)
            model.join_load(known, timeout_ms, self.now_ms)
        elif known is not None and known.is_committing:
            with pytest.raises(Aborted, match="is being committed"):
                begin()
        elif "insert" in model.sources:
            with pytest.raises(FailedPrecondition, match="a load brings items as files"):
                begin()
        else:
            begun = begin()
            assert isinstance(begun, LoadRecord)
            self.saw_new_ids([range_end(begun.id_head)])
            model.begin_load(ref, batch, begun.id_head, timeout_ms, self.now_ms)

    def expected_refusal(self, name: str, ref: LoadRef) -> type[QueueberError] | None:
        """Of what would be added to a load."""
        load = self.models[name].loads.get(ref.name)
        if load is None or load.ref != ref:
            return NotFound
        return Aborted if load.is_committing else None

    def draw_load(self, name: str, data: st.DataObject) -> LoadRef:
        """Most often one that is under way."""
        known = [load.ref for load in self.models[name].loads.values()]
        return data.draw(st.sampled_from(known * 4 + [LoadRef("l", 1)]))

    def stage(self, name: str, data: st.DataObject) -> None:
        queue = self.queue(name)
        ref, part_ref = self.draw_load(name, data), data.draw(part_refs)
        refusal = self.expected_refusal(name, ref)
        load = loads_under_way(self.engine, queue).get(load_digest(ref.name))
        if load is None:
            return
        if refusal is not None:
            # Not over the files of one that is being taken in.
            part_ref = PartRef(part_ref.partition, "late")
        rows = [
            ModelRow(self.contents(), load.started_at_ms + delay_ms, priority, key, attributes)
            for delay_ms, priority, key, attributes in data.draw(load_rows)
        ]
        size = data.draw(st.sampled_from([6, 3]))
        part = build_part(
            self.engine,
            queue,
            load,
            part_ref,
            *(as_rows(rows[at : at + size]) for at in range(0, len(rows), size)),
            sorted_entries=data.draw(st.sampled_from([1000, 1000, 2])),
            file_bytes=data.draw(st.sampled_from([MIB, MIB, 1])),
            buffered_rows=data.draw(st.sampled_from([1000, 1])),
        )
        check_part(load, queue.prefix, part)
        if refusal is not None:
            with pytest.raises(refusal):
                finish_part(self.engine, queue, ref, part, self.now_ms)
        else:
            finish_part(self.engine, queue, ref, part, self.now_ms)
            model = self.models[name]
            model.finish_part(model.loads[ref.name], part_ref, rows, self.now_ms)

    def abort_load(self, name: str, data: st.DataObject) -> None:
        ref, model = self.draw_load(name, data), self.models[name]
        refusal = self.expected_refusal(name, ref)
        if refusal is Aborted:
            with pytest.raises(Aborted):
                abort_load(self.engine, self.queue(name), ref, self.now_ms)
            return
        aborted = abort_load(self.engine, self.queue(name), ref, self.now_ms)
        assert aborted == (refusal is None)
        if aborted:
            model.drop_load(ref.name, self.now_ms)

    def add_with_origin(self, name: str, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(["", "a", "e"]))
        keys = [key, "", key] if key else []
        origin = Origin(self.draw_load(name, data), data.draw(st.integers(0, 3)), row=7)
        contents = [self.contents() for _ in range(3)]
        self.add_items(name, NewItems(contents, keys=keys, origin=origin))

    def is_refused_for_a_load(self, name: str, items: NewItems) -> bool:
        """Whether an add is refused, as it must be, because of a load; it is sent then."""
        refusal: type[QueueberError] | None = None
        if any(items.keys) and self.models[name].keys_are_frozen:
            refusal = Unavailable
        elif items.origin is not None:
            refusal = self.expected_refusal(name, items.origin.load)
            if refusal is None:
                self.models[name].loads[items.origin.load.name].seen(self.now_ms)
        if refusal is None:
            return False
        with pytest.raises(refusal):
            add(self.engine, self.queue(name), items, self.now_ms)
        return True

    # --- committing -------------------------------------------------------------------------------

    def start_commit(self, name: str, data: st.DataObject) -> None:
        model, queue = self.models[name], self.queue(name)
        ref = self.draw_load(name, data)
        load, loaded = model.loads.get(ref.name), model.loaded.get(ref.name)
        by_partition = {} if load is None else {each.partition: each for each in load.parts}
        refs = list(by_partition.values())
        if data.draw(st.integers(0, 9)) == 0:
            refs.append(PartRef(9, "never finished"))
        steps = commit_load(self.engine, queue, ref, refs, self.now_ms)
        if loaded is not None and loaded.ref.epoch >= ref.epoch:
            with pytest.raises(StopIteration) as end:
                next(steps)
            assert_loaded(end.value.value, loaded)
            return
        refusal = self.expected_refusal(name, ref)
        if refusal is not None or load is None:
            with pytest.raises(refusal or NotFound):
                next(steps)
            return
        load.seen(self.now_ms)
        if not model.is_commit_under_way:
            model.forget(self.now_ms)
        if name in self.commits:
            with pytest.raises(Unavailable, match="another load is being committed"):
                exhaust(steps)
        elif refs and refs[-1].partition == 9:
            with pytest.raises(InvalidArgument, match="was not finished"):
                exhaust(steps)
        else:
            self.begin_commit(name, load, refs, steps)

    def begin_commit(
        self, name: str, load: ModelLoad, refs: Sequence[PartRef], steps: Steps[LoadedRecord]
    ) -> None:
        """Up to the first step after which it is known what is to be committed."""
        decided = self.models[name].decide_commit(load, refs, self.now_ms)
        self.commits[name] = RunningCommit(steps, decided)
        record = loads_under_way(self.engine, self.queue(name))[load_digest(load.ref.name)]
        while name in self.commits and not record.is_committing:
            self.advance(name)
            record = loads_under_way(self.engine, self.queue(name)).get(
                load_digest(load.ref.name), record
            )

    def go_on_with_commit(self, name: str, data: st.DataObject) -> None:
        for _ in range(data.draw(st.integers(1, 4))):
            if name in self.commits:
                self.advance(name)

    def advance(self, name: str) -> None:
        running = self.commits[name]
        try:
            step = next(running.steps)
        except StopIteration as end:
            del self.commits[name]
            self.was_committed(name, running)
            assert_loaded(end.value, self.models[name].loaded[running.decided.ref.name])
        else:
            if step is Step.SYNC:
                running.has_intent = True
                self.engine.store.sync()
                self.models[name].loads[running.decided.ref.name].save_intent(
                    running.decided.now_ms
                )
            self.models[name].keys_are_frozen = self.queue(name).keys.is_frozen

    def was_committed(self, name: str, running: RunningCommit) -> None:
        model = self.models[name]
        model.commit_load(running.decided)
        model.keys_are_frozen = False
        # What came due while keys were frozen is looked at in a moment; here it is now.
        queue = self.queue(name)
        self.engine.agenda.schedule(queue.queue_id, self.now_ms)

    def has_intent(self, name: str) -> bool:
        return self.commits[name].has_intent

    def give_up_commits(self) -> dict[str, RunningCommit]:
        """The server goes."""
        commits, self.commits = self.commits, {}
        for running in commits.values():
            running.steps.close()
        return commits

    def queue_was_deleted(self, name: str) -> None:
        running = self.commits.pop(name, None)
        if running is not None:
            with pytest.raises(NotFound, match="was deleted while the load was committed"):
                exhaust(running.steps)

    # --- after every step -------------------------------------------------------------------------

    @invariant()
    def loads_match(self) -> None:
        for name, model in self.models.items():
            queue = self.queue(name)
            found = {load.ref.name: load for load in loads_under_way(self.engine, queue).values()}
            assert found.keys() == model.loads.keys()
            for each, load in model.loads.items():
                assert (found[each].ref, found[each].rows, found[each].forget_at_ms) == (
                    load.ref,
                    load.rows,
                    load.forget_at_ms,
                )
                assert found[each].is_committing == load.is_committing
            for each in ("l", "m"):
                loaded = find_committed(self.engine, queue, LoadRef(each))
                assert (loaded is None) == (each not in model.loaded)
                if loaded is not None:
                    assert_loaded(loaded, model.loaded[each])


def as_rows(rows: Sequence[ModelRow]) -> Rows:
    return Rows(
        [row.contents for row in rows],
        [row.visible_at_ms for row in rows],
        [row.priority for row in rows],
        [row.key for row in rows],
        [row.attributes for row in rows],
    )


def exhaust(steps: Steps[LoadedRecord]) -> None:
    for _ in steps:
        pass


def assert_loaded(found: LoadedRecord, expected: ModelLoaded) -> None:
    assert (found.ref, found.rows, found.duplicates, found.forget_at_ms) == (
        expected.ref,
        expected.rows,
        expected.duplicates,
        expected.forget_at_ms,
    )
