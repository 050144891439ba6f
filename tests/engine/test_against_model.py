"""The engine against a model of plain dictionaries, through every operation, crashes included."""

import os
from collections import defaultdict
from dataclasses import replace
from itertools import chain
from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from queueber.db.records.keys import NEVER_MS
from queueber.db.store.contract import Store
from queueber.db.store.rocks import RocksStore
from queueber.engine.integrity.check_store import check_store
from queueber.engine.open import open_engine
from queueber.engine.queue.peek import look
from queueber.engine.queue.queue_state import QueueState, View
from queueber.engine.queue.results import results_of
from queueber.errors import Aborted, FailedPrecondition, NotFound
from queueber.ids import IdSource, made_at_ms
from queueber.limits import MIB
from queueber.model import (
    NO_OPTIONS,
    Added,
    BatchInfo,
    ItemInfo,
    ItemOptions,
    ItemState,
    LeaseInfo,
    NewItems,
    PackedContents,
    Producer,
    QueueSettings,
    Results,
)
from tests.engine.route_rules import RouteRules
from tests.support import reference_model as model_module
from tests.support.ending import expire_together
from tests.support.folders import copy_open_store, quick_folder, remove_folder
from tests.support.load_model import LOAD_KEEP_MS
from tests.support.operations import (
    acknowledge,
    add,
    cancel,
    cancel_batch,
    cancel_key,
    complete,
    complete_whole,
    configure_queue,
    create_queue,
    delete_queue,
    drop_reader,
    extend,
    fail,
    find_item,
    forget_batch,
    forget_batches,
    held_by,
    live_view,
    pause,
    peek,
    poll,
    purge,
    queue_stats,
    read_results,
    receipt,
    redrive,
    redrive_first,
    release,
    release_lease,
    remove,
    remove_whole,
    reschedule,
    resume,
    sweep,
    take_view,
)
from tests.support.reference_model import TOTALS, ModelQueue

pytestmark = pytest.mark.slow

SETTINGS = QueueSettings(
    attempts_max=3,
    backoff_ms=(20, 60),
    dedup_window_ms=300,
    batch_keep_ms=model_module.BATCH_KEEP_MS,
    cap_by="who",
)
LENIENT = replace(SETTINGS, attempts_max=0, isolation=False)
NAMES = ("default", "other")
BATCHES = ("red", "green")
STATES = {
    ItemState.READY: "ready",
    ItemState.DELAYED: "delayed",
    ItemState.LEASED: "held",
    ItemState.DEAD: "dead",
}
CONNECTIONS = ("near", "far")
OUTCOMES = ("remove", "remove_whole", "complete", "complete_whole", "fail", "fail", "release")
OPERATIONS = (
    "connection_is_lost", "connection_is_lost", "answer_is_not_delivered", "cancel", "purge",
    "cancel_batch", "cancel_key", "reschedule", "reschedule",
    "redrive_chosen", "redrive_slice", "pause_or_resume", "acknowledge_or_drop", "set_caps",
    "forget_batch", "set_dead_age",
)  # fmt: skip
ALL = [ItemOptions(2, (0, 90), 5), ItemOptions(expires_ms=210), ItemOptions(1, (), 7, 260)]
name_of_queue = st.sampled_from(NAMES)
few = st.integers(1, 6)
some_counts = st.lists(few, min_size=1, max_size=3)
lease_ms = st.integers(1, 300)
columns = st.lists(
    st.tuples(
        st.sampled_from([0, 0, 0, 1, 50, 200]),
        st.sampled_from([5, 5, 5, 0, 9]),
        st.sampled_from(["", "", "a", "b", "ü"]),
        st.sampled_from(
            [{}, {"traceparent": "00-ab"}, {"a": "", "ö": "b"}, {"who": "x"}, {"who": "y", "a": ""}]
        ),
        st.sampled_from([NO_OPTIONS, NO_OPTIONS, ItemOptions(1), ItemOptions(0, (5,)), *ALL]),
    ),
    min_size=1,
    max_size=6,
)

EXAMPLES = int(os.environ.get("QUEUEBER_TEST_EXAMPLES", "40"))


class EngineAgainstModel(RouteRules):
    def __init__(self) -> None:
        super().__init__()
        self.folder = quick_folder()
        self.generation = 0
        self.random = Random(7)
        self.now_ms = 1_700_000_000_000
        self.models = {name: ModelQueue(SETTINGS) for name in NAMES}
        self.past_leases: list[tuple[bytes, list[bytes]]] = [(bytes(16), [bytes(16)])]
        self.bound: defaultdict[tuple[str, str], list[bytes]] = defaultdict(list)
        self.newest_id = b""
        self.moments: list[tuple[View, tuple[list[list[ItemInfo]], Results]]] = []
        self.patch = pytest.MonkeyPatch()
        # A window of a few entries is refilled and cut far more often than the real one; what is
        # kept for days is kept for a moment.
        self.patch.setattr("queueber.engine.queue.ready_index.READY_WINDOW_ENTRIES", 4)
        self.patch.setattr("queueber.engine.queue.recent_blocks.RECENT_QUEUE_BYTES_MAX", 3000)
        # Small blocks, so that calls have several, and little is left of many.
        self.patch.setattr("queueber.db.records.blocks.BLOCK_ITEMS_MAX", 5)
        self.patch.setattr("queueber.db.records.blocks.BLOCK_BYTES_MAX", 40)
        self.patch.setattr("queueber.db.records.blocks.BLOCK_WASTE_FACTOR", 1)
        self.patch.setattr(
            "queueber.engine.queue.poll.OLDEST_FIRST_EVERY", model_module.OLDEST_FIRST_EVERY
        )
        self.patch.setattr(
            "queueber.engine.queue.isolation.QUARANTINE_PATIENCE_MS",
            model_module.QUARANTINE_PATIENCE_MS,
        )
        # A sweep goes through all dead letters at once, in slices.
        self.patch.setattr("queueber.engine.queue.dead_letters.DEAD_READ_REST_MS", 0)
        kept = "queueber.engine.records."
        self.patch.setattr(kept + "producers.PRODUCER_KEEP_MS", model_module.PRODUCER_KEEP_MS)
        for module in ("records.producers", "integrity.records"):
            name = f"queueber.engine.{module}.PRODUCER_ANSWERS_KEPT"
            self.patch.setattr(name, model_module.ANSWERS_KEPT)
        self.patch.setattr("queueber.engine.loads.commit.LOAD_KEEP_MS", LOAD_KEEP_MS)
        self.open(RocksStore(self.folder / "0"))
        self.create_topic()
        for name in NAMES:
            assert create_queue(self.engine, name, SETTINGS, self.now_ms)
        self.add_sources()

    def open(self, store: Store) -> None:
        self.store = store
        self.engine = open_engine(store, IdSource(self.random))

    def teardown(self) -> None:
        self.patch.undo()
        self.moments.clear()
        self.store.close()
        remove_folder(self.folder)

    def queue(self, name: str) -> QueueState:
        return self.engine.queues.get(name)

    def saw_new_ids(self, ids: list[bytes]) -> None:
        assert ids == sorted(set(ids))
        assert ids[0] > self.newest_id
        self.newest_id = ids[-1]

    # --- adding -----------------------------------------------------------------------------------

    @rule(name=name_of_queue, count=few)
    def add_plain(self, name: str, count: int) -> None:
        self.add_items(name, NewItems([self.contents() for _ in range(count)]))

    @rule(name=name_of_queue, columns=columns, batch=st.sampled_from(["", *BATCHES]))
    def add(
        self,
        name: str,
        columns: list[tuple[int, int, str, dict[str, str], ItemOptions]],
        batch: str,
    ) -> None:
        delays_ms, priorities, keys, attributes, options = zip(*columns, strict=True)
        contents = [self.contents() for _ in columns]
        items = NewItems(contents, delays_ms, priorities, keys, attributes, batch)
        items.options = options
        self.add_items(name, items)

    @rule(
        name=name_of_queue,
        producer=st.sampled_from(["p", "a"]),
        epoch=st.integers(1, 2),
        sequence=st.integers(1, 5),
        key=st.sampled_from(["", "a"]),
        is_other=st.integers(0, 4),
    )
    def add_as_producer(
        self, name: str, producer: str, epoch: int, sequence: int, key: str, is_other: int
    ) -> None:
        keys = [key, key] if key else []
        # A call that is repeated mostly brings the same again.
        contents = [b"%d" % sequence, b"other" if is_other == 0 else b""]
        producer_turn = Producer(producer, epoch, sequence)
        self.add_items(name, NewItems(contents, keys=keys, producer=producer_turn))

    def contents(self) -> bytes:
        return self.random.randbytes(self.random.randrange(40))

    def add_items(self, name: str, items: NewItems) -> None:
        model = self.models[name]
        refusal = model.expected_refusal(items)
        if refusal:
            with pytest.raises(Aborted, match=refusal):
                add(self.engine, self.queue(name), items, self.now_ms)
            return
        repeat = model.expected_repeat(items)
        if repeat is None and self.is_refused_for_a_load(name, items):
            return
        added = add(self.engine, self.queue(name), items, self.now_ms)
        if repeat is not None:
            assert as_lists(added) == as_lists(repeat)
            return
        duplicates = model.expected_duplicates(items, self.now_ms)
        assert not added.is_repeat
        assert list(added.duplicates) == (duplicates if any(duplicates) else [])
        new = [i for i, is_known in zip(added.ids, duplicates, strict=True) if not is_known]
        if new:
            self.saw_new_ids(new)
        model.add(items, added, self.now_ms)

    # --- polling and outcomes ---------------------------------------------------------------------

    @rule(name=name_of_queue, counts=some_counts, lease_ms=lease_ms)
    def poll(self, name: str, counts: list[int], lease_ms: int) -> None:
        self.poll_items(name, counts, lease_ms, None)

    @rule(
        name=name_of_queue,
        counts=some_counts,
        lease_ms=lease_ms,
        connection=st.sampled_from(CONNECTIONS),
    )
    def poll_bound(self, name: str, counts: list[int], lease_ms: int, connection: str) -> None:
        self.poll_items(name, counts, lease_ms, connection)

    def poll_items(
        self, name: str, counts: list[int], lease_ms: int, connection: str | None
    ) -> None:
        model = self.models[name]
        bound = self.bound[name, connection] if connection else []
        held = [item_id for lease in bound for item_id in model.held_by(lease)]
        expected = model.expected_poll(counts, self.now_ms, held if connection else None)
        holder = held_by(self.engine, self.queue(name), bound) if connection else None
        answers = poll(
            self.engine,
            self.queue(name),
            counts,
            lease_ms=lease_ms,
            answer_bytes_max=MIB,
            now_ms=self.now_ms,
            holder=holder,
        )
        assert [list(answer.ids) for answer in answers] == expected
        for answer in answers:
            items = [model.items[i] for i in answer.ids]
            details = answer.details
            nothing = [""] * len(items)
            assert list(answer.contents) == [item.contents for item in items]
            assert list(details.attempts or [1] * len(items)) == [
                len(item.failures_ms) + 1 for item in items
            ]
            assert list(details.keys or nothing) == [item.key for item in items]
            assert list(details.attributes or [{}] * len(items)) == [i.attributes for i in items]
            assert list(details.batches or nothing) == [item.batch for item in items]
            assert list(details.timeouts_ms or [0] * len(items)) == [
                item.options.timeout_ms for item in items
            ]
            assert bool(answer.ids) == bool(answer.lease_id)
            if answer.ids:
                self.saw_new_ids([answer.lease_id])
                expires_at_ms = self.now_ms + lease_ms
                model.poll(answer.lease_id, list(answer.ids), expires_at_ms, self.now_ms)
                told = list(details.deliveries or details.attempts or [1] * len(items))
                assert told == [item.deliveries for item in items]
                self.past_leases.append((answer.lease_id, list(answer.ids)))
                bound.append(answer.lease_id)

    def draw_pairs(self, data: st.DataObject) -> list[tuple[bytes, bytes]]:
        return [
            (data.draw(st.sampled_from(ids)), lease)
            for lease, ids in data.draw(
                st.lists(st.sampled_from(self.past_leases[-8:]), min_size=1, max_size=5)
            )
        ]

    @rule(name=name_of_queue, data=st.data(), outcome=st.sampled_from(OUTCOMES))
    def outcome(self, name: str, data: st.DataObject, outcome: str) -> None:
        getattr(self, outcome)(name, data)

    def remove(self, name: str, data: st.DataObject) -> None:
        pairs = self.draw_pairs(data)
        ids, leases = zip(*pairs, strict=True)
        removed = remove(self.engine, self.queue(name), ids, leases, self.now_ms)
        assert removed == [self.models[name].remove(i, lease, self.now_ms) for i, lease in pairs]

    def remove_whole(self, name: str, data: st.DataObject) -> None:
        chosen = data.draw(st.lists(st.sampled_from(self.past_leases[-8:]), min_size=1, max_size=3))
        leases = [lease for lease, _ in chosen]
        counts = [len(ids) - data.draw(st.sampled_from([0, 0, 0, 1])) or 1 for _, ids in chosen]
        removed = remove_whole(self.engine, self.queue(name), leases, counts, self.now_ms)
        model = self.models[name]
        assert removed == [
            model.remove_whole(lease, count, self.now_ms)
            for lease, count in zip(leases, counts, strict=True)
        ]

    def complete(self, name: str, data: st.DataObject) -> None:
        pairs = self.draw_pairs(data)
        ids, leases = zip(*pairs, strict=True)
        results = [self.contents() for _ in pairs]
        completed = complete(self.engine, self.queue(name), ids, leases, results, self.now_ms)
        assert completed == self.models[name].complete(pairs, results, self.now_ms)

    def complete_whole(self, name: str, data: st.DataObject) -> None:
        chosen = data.draw(st.lists(st.sampled_from(self.past_leases[-8:]), min_size=1, max_size=3))
        leases = [lease for lease, _ in chosen]
        counts = [len(ids) - data.draw(st.sampled_from([0, 0, 0, 1])) or 1 for _, ids in chosen]
        results = [[self.contents() for _ in range(count)] for count in counts]
        completed = complete_whole(
            self.engine, self.queue(name), leases, counts,
            PackedContents.pack(chain.from_iterable(results)), self.now_ms,
        )  # fmt: skip
        model = self.models[name]
        expected = []
        for (lease, ids), of_lease in zip(chosen, results, strict=True):
            held = [(each, lease) for each in ids if model.holds(each, lease, self.now_ms)]
            expected.append(len(held) == len(of_lease))
            if expected[-1]:
                model.complete(held, of_lease, self.now_ms)
        assert completed == expected

    def fail(self, name: str, data: st.DataObject) -> None:
        delay_ms = data.draw(st.sampled_from([None, None, 0, 30]))
        pairs = self.draw_pairs(data)
        ids, leases = zip(*pairs, strict=True)
        errors = [f"error {at}" for at in range(len(ids))]
        delays_ms = [delay_ms] * len(ids)
        outcomes = fail(self.engine, self.queue(name), ids, leases, errors, delays_ms, self.now_ms)
        model = self.models[name]
        assert outcomes == [
            model.fail(i, lease, error, delay_ms, self.now_ms)
            for (i, lease), error in zip(pairs, errors, strict=True)
        ]

    def release(self, name: str, data: st.DataObject) -> None:
        pairs = self.draw_pairs(data)
        ids, leases = zip(*pairs, strict=True)
        released = release(self.engine, self.queue(name), ids, leases, self.now_ms)
        assert released == [self.models[name].release(i, lease, self.now_ms) for i, lease in pairs]

    @rule(name=name_of_queue, data=st.data(), lease_ms=lease_ms)
    def extend(self, name: str, data: st.DataObject, lease_ms: int) -> None:
        chosen = data.draw(
            st.lists(
                st.sampled_from(self.past_leases), min_size=1, max_size=3, unique_by=lambda x: x[0]
            )
        )
        leases = [lease for lease, _ in chosen]
        durations = [lease_ms + n for n in range(len(leases))]
        extended = extend(self.engine, self.queue(name), leases, durations, self.now_ms)
        assert extended == [
            self.models[name].extend(lease, ms, self.now_ms)
            for lease, ms in zip(leases, durations, strict=True)
        ]

    def connection_is_lost(self, name: str, data: st.DataObject) -> None:
        connection = data.draw(st.sampled_from(CONNECTIONS))
        leases = self.bound.pop((name, connection), [])
        moved = expire_together(self.engine, self.queue(name), leases, self.now_ms)
        lost = "its worker lost the connection"
        assert moved == self.models[name].end_leases(leases, self.now_ms, lost)

    def answer_is_not_delivered(self, name: str, data: st.DataObject) -> None:
        lease, _ = data.draw(st.sampled_from(self.past_leases))
        moved = release_lease(self.engine, self.queue(name), lease, self.now_ms)
        assert moved == self.models[name].release_lease(lease, self.now_ms)

    # --- operating --------------------------------------------------------------------------------

    @rule(name=name_of_queue, data=st.data(), operation=st.sampled_from(OPERATIONS))
    def operate(self, name: str, data: st.DataObject, operation: str) -> None:
        getattr(self, operation)(name, data)

    def cancel(self, name: str, data: st.DataObject) -> None:
        model = self.models[name]
        candidates = [*sorted(model.items)[:20], bytes(16), self.newest_id or bytes(16)]
        ids = data.draw(st.lists(st.sampled_from(candidates), min_size=1, max_size=3))
        cancelled = cancel(self.engine, self.queue(name), ids, self.now_ms)
        assert cancelled == model.cancel(ids, self.now_ms)

    def cancel_batch(self, name: str, data: st.DataObject) -> None:
        model, batch = self.models[name], data.draw(st.sampled_from(BATCHES))
        for state, state_name in STATES.items():
            is_known = batch in model.batches
            of_state = model.of_state(state_name)
            expected = [i for i in of_state if is_known and model.items[i].batch == batch]
            cancelled = cancel_batch(
                self.engine, self.queue(name), batch, state, b"", 1000, self.now_ms
            )
            assert cancelled == (len(expected), b"")
            if expected:
                model.cancel(sorted(expected), self.now_ms)

    def cancel_key(self, name: str, data: st.DataObject) -> None:
        model = self.models[name]
        key = data.draw(st.sampled_from([*sorted(model.keys)[:5], "unknown"]))
        ids = [model.keys[key][0]] if key in model.keys else []
        cancelled = cancel_key(self.engine, self.queue(name), key, self.now_ms)
        assert cancelled == (model.cancel(ids, self.now_ms) == [True])

    def reschedule(self, name: str, data: st.DataObject) -> None:
        model = self.models[name]
        candidates = [*sorted(model.items)[:20], bytes(16), self.newest_id or bytes(16)]
        ids = data.draw(st.lists(st.sampled_from(candidates), min_size=1, max_size=6))
        delay_ms = data.draw(st.sampled_from([0, 0, 1, 50, 220]))
        rescheduled = reschedule(self.engine, self.queue(name), ids, delay_ms, self.now_ms)
        assert rescheduled == model.reschedule(ids, delay_ms, self.now_ms)

    def purge(self, name: str, data: st.DataObject) -> None:
        state, limit = data.draw(st.sampled_from(list(STATES))), data.draw(few)
        model = self.models[name]
        of_state = model.of_state(STATES[state])
        level = [i for i in of_state if model.level(i) == model.level(of_state[0])]
        # A slice of ready items ends with its level.
        expected = (level if state is ItemState.READY else of_state)[:limit]
        purged, more = purge(self.engine, self.queue(name), state, limit, self.now_ms)
        assert (purged, more) == (len(expected), len(of_state) > len(expected))
        if expected:
            model.cancel(expected, self.now_ms, "purged")

    def forget_batch(self, name: str, data: st.DataObject) -> None:
        model, queue = self.models[name], self.queue(name)
        if data.draw(st.booleans()):
            unchanged_for_ms = data.draw(st.sampled_from([0, 30]))
            after, forgotten = 0, 0
            while True:
                some, after = forget_batches(
                    self.engine, queue, unchanged_for_ms, after, 1, self.now_ms
                )
                forgotten += some
                if not after:
                    break
            assert forgotten == model.forget_batches(unchanged_for_ms, self.now_ms)
            return
        batch = data.draw(st.sampled_from(BATCHES))
        expected = model.forget_batch(batch)
        if expected is None:
            with pytest.raises(FailedPrecondition, match="it can be forgotten when it has neither"):
                forget_batch(self.engine, queue, batch, self.now_ms)
        else:
            assert forget_batch(self.engine, queue, batch, self.now_ms) == expected

    def redrive_chosen(self, name: str, data: st.DataObject) -> None:
        model = self.models[name]
        candidates = [*model.of_state("dead"), *sorted(model.items)[:3], bytes(16)]
        ids = data.draw(st.lists(st.sampled_from(candidates), min_size=1, max_size=4))
        redriven = redrive(self.engine, self.queue(name), ids, self.now_ms)
        assert redriven == model.redrive(ids, self.now_ms)

    def redrive_slice(self, name: str, data: st.DataObject) -> None:
        limit = data.draw(few)
        model = self.models[name]
        dead = model.of_state("dead")
        redriven, more = redrive_first(self.engine, self.queue(name), limit, self.now_ms)
        assert (redriven, more) == (min(limit, len(dead)), len(dead) > limit)
        model.redrive(dead[:limit], self.now_ms)

    def pause_or_resume(self, name: str, data: st.DataObject) -> None:
        for_ms = data.draw(st.sampled_from([0, 0, 100, NEVER_MS]))
        until_ms = min(self.now_ms + for_ms, NEVER_MS) if for_ms else 0
        if for_ms:
            pause(self.engine, self.queue(name), until_ms)
        else:
            resume(self.engine, self.queue(name))
        self.models[name].paused_until_ms = until_ms

    def set_caps(self, name: str, data: st.DataObject) -> None:
        """The rates have tokens at whole microseconds, as those of the model have at any time."""
        rate_items, rate_ms = data.draw(st.sampled_from([(0, 0), (0, 0), (5, 100), (1, 40)]))
        key_items, key_ms = data.draw(st.sampled_from([(0, 0), (2, 100), (1, 40)]))
        model = self.models[name]
        model.settings = replace(
            model.settings,
            concurrency_max=data.draw(st.sampled_from([0, 0, 1, 3, 8])),
            rate_items=rate_items,
            rate_ms=rate_ms,
            cap_by_concurrency_max=data.draw(st.sampled_from([0, 1, 1, 2, 3])),
            cap_by_rate_items=key_items,
            cap_by_rate_ms=key_ms,
        )
        configure_queue(self.engine, name, model.settings, self.now_ms)
        model.correct_rates(self.now_ms)
        self.sweep(1000)

    def set_dead_age(self, name: str, data: st.DataObject) -> None:
        model = self.models[name]
        age_ms = data.draw(st.sampled_from([0, 1, 60, 60, 300]))
        model.settings = replace(model.settings, dead_age_ms=age_ms)
        configure_queue(self.engine, name, model.settings, self.now_ms)
        self.sweep(data.draw(few))

    def acknowledge_or_drop(self, name: str, data: st.DataObject) -> None:
        reader = data.draw(st.sampled_from(["x", "y"]))
        model, log = self.models[name], self.queue(name).results
        offset = data.draw(st.integers(-1, len(model.results)))
        if offset < 0:
            assert drop_reader(self.store, log, reader) == (reader in model.readers)
            model.readers.pop(reader, None)
        else:
            acknowledge(self.store, log, reader, offset)
            model.readers[reader] = max(offset, model.readers.get(reader, 0))
        self.engine.agenda.schedule(self.queue(name).queue_id, self.now_ms)
        self.sweep(1000)

    # --- time and crashes -------------------------------------------------------------------------

    @rule(ms=st.integers(1, 250), slice_items=few)
    def time_passes(self, ms: int, slice_items: int) -> None:
        self.now_ms += ms
        if self.engine.agenda.next_ms() > self.now_ms:
            for model in self.models.values():
                assert not any(at <= self.now_ms for at in model.lease_expires_ms.values())
        self.sweep(slice_items)

    def sweep(self, slice_items: int) -> None:
        slices = 0
        while sweep(self.engine, self.now_ms, slice_items) is not None:
            slices += 1
            assert slices < 1000, "the sweep does not end"
        for model in self.models.values():
            model.sweep(self.now_ms)

    @rule(ms=st.integers(1, 400))
    def clock_steps_back(self, ms: int) -> None:
        """As at a restart, after which the server looks at every queue."""
        self.now_ms -= ms
        for name, model in self.models.items():
            queue = self.queue(name)
            if queue.caps is not None and queue.caps.keys is not None:
                queue.caps.keys.has_checked_clock = False
            self.engine.agenda.schedule(queue.queue_id, self.now_ms)
            model.correct_rates(self.now_ms)
        self.sweep(1000)

    @rule()
    def crash_and_reopen(self) -> None:
        """What a killed server leaves: the files as they are while the store is open."""
        self.generation += 1
        is_half_committed = {name for name in self.commits if self.has_intent(name)}
        copy = self.folder / str(self.generation)
        copy_open_store(self.folder / str(self.generation - 1), copy)
        commits = self.give_up_commits()
        self.moments.clear()
        self.store.close()
        remove_folder(self.folder / str(self.generation - 1))
        self.open(RocksStore(copy))
        for name, model in self.models.items():
            model.crash()
            if name in is_half_committed:
                self.was_committed(name, commits[name])

    @precondition(lambda self: len(self.models["other"].items) > 3)
    @rule()
    def delete_and_recreate(self) -> None:
        assert delete_queue(self.engine, "other")
        self.queue_was_deleted("other")
        settings = LENIENT if self.models["other"].settings.isolation else SETTINGS
        assert create_queue(self.engine, "other", settings, self.now_ms)
        self.models["other"] = ModelQueue(settings)
        for connection in CONNECTIONS:
            self.bound.pop(("other", connection), None)

    @precondition(lambda self: len(self.moments) < 3)
    @rule(name=name_of_queue)
    def take_a_snapshot(self, name: str) -> None:
        queue = self.queue(name)
        view, _ = take_view(self.engine, queue)
        self.moments.append((view, all_of(live_view(self.engine, queue))))

    @precondition(lambda self: self.moments)
    @rule()
    def snapshots_show_the_moment_when_they_were_taken(self) -> None:
        for view, shown in self.moments:
            assert all_of(view) == shown

    # --- after every step -------------------------------------------------------------------------

    @invariant()
    def store_is_sound(self) -> None:
        if not any(self.has_intent(name) for name in self.commits):
            assert check_store(self.store) == []

    @invariant()
    def statistics_match(self) -> None:
        for name, model in self.models.items():
            claimable = [i for i in model.of_state("ready") if not model.items[i].is_parked]
            leasable = min(len(claimable), model.room(self.now_ms))
            assert self.queue(name).leasable(self.now_ms) == leasable
            stats = queue_stats(self.engine, self.queue(name), waiting_polls=0, now_ms=self.now_ms)
            is_paused = model.paused_until_ms > self.now_ms
            ready = [] if is_paused else claimable
            assert stats.parked == model.count("ready") - len(claimable)
            oldest_ms = min([self.now_ms, *(model.items[i].visible_at_ms for i in ready)])
            assert (stats.ready, stats.delayed, stats.leased, stats.dead, stats.leases) == (
                model.count("ready"),
                model.count("delayed"),
                model.count("held"),
                model.count("dead"),
                len(model.lease_expires_ms),
            )
            assert stats.oldest_claimable_age_ms == self.now_ms - oldest_ms
            assert stats.contents_bytes == sum(item.size for item in model.items.values())
            assert stats.paused_until_ms == (model.paused_until_ms if is_paused else 0)
            assert stats.batches == len(model.batches)
            assert {total: getattr(stats, f"{total}_total") for total in TOTALS} == model.totals

    @invariant()
    def receipts_match(self) -> None:
        for name, model in self.models.items():
            for batch in BATCHES:
                if batch in model.batches:
                    expected = model.batches[batch].receipt(batch)
                    assert receipt(self.engine, self.queue(name), batch) == expected
                else:
                    with pytest.raises(NotFound):
                        receipt(self.engine, self.queue(name), batch)

    @invariant()
    def leases_and_batches_are_listed_page_by_page(self) -> None:
        for name, model in self.models.items():
            leases = every_lease(self.queue(name), 3)
            assert [(i.lease_id, i.items, i.expires_at_ms) for i in leases] == model.leases()
            assert [i.polled_at_ms for i in leases] == [made_at_ms(i.lease_id) for i in leases]
            batches = every_batch(self.queue(name), 1)
            numbers = [batch.number for batch in batches]
            assert numbers == sorted(set(numbers), reverse=True)
            assert {batch.receipt.batch: batch.receipt for batch in batches} == {
                batch: known.receipt(batch) for batch, known in model.batches.items()
            }

    @invariant()
    def results_match(self) -> None:
        for name, model in self.models.items():
            found = read_results(self.engine, self.queue(name), 0, 10_000, MIB)
            kept = model.results[model.first_offset :]
            assert found.missed == model.first_offset
            assert found.next_offset == len(model.results)
            assert [
                (r.offset, r.id, r.result, r.attempt, r.key, r.batch, r.attributes)
                for r in found.results
            ] == [
                (at, r.id, r.result, r.attempt, r.key, r.batch, r.attributes)
                for at, r in enumerate(kept, model.first_offset)
            ]

    @invariant()
    def peek_shows_every_item_as_it_is(self) -> None:
        for name, model in self.models.items():
            for state, state_name in STATES.items():
                seen, after = [], b""
                while True:
                    page, after = peek(self.engine, self.queue(name), state, after, 3, MIB)
                    seen += page
                    if not after:
                        break
                assert [each.id for each in seen] == model.of_state(state_name)
                for each in seen:
                    item = model.items[each.id]
                    batch = item.batch if item.batch in model.batches else ""
                    assert (each.contents, each.key, each.attributes) == (
                        item.contents,
                        item.key,
                        item.attributes,
                    )
                    if state is not ItemState.DEAD:
                        assert each.batch == batch
                    assert (each.priority, each.attempts, each.group_max, each.lease_id) == (
                        item.priority,
                        len(item.failures_ms),
                        item.group_max,
                        item.lease,
                    )
                    assert (each.attempt_times_ms, each.last_error, each.added_at_ms) == (
                        item.failures_ms,
                        item.last_error,
                        made_at_ms(each.id),
                    )
                    assert each.deliveries == item.deliveries

    @invariant()
    def every_item_is_found_in_its_state_with_its_history(self) -> None:
        for name, model in self.models.items():
            for item_id, item in model.items.items():
                found = find_item(self.engine, self.queue(name), item_id).found
                assert found is not None
                assert found.state is not None
                assert found.item is not None
                assert STATES[found.state] == item.state
                assert found.item.contents == item.contents
                assert [(each.at_ms, each.end, each.error) for each in found.attempts] == [
                    (at_ms, *end) for at_ms, end in zip(item.failures_ms, item.ends, strict=True)
                ]
                assert (found.lease.lease_id if found.lease else b"") == item.lease
            for at, result in enumerate(model.results):
                finding = find_item(self.engine, self.queue(name), result.id)
                told = finding.found.result if finding.found else None
                if at < model.first_offset:
                    assert told is None
                else:
                    assert told is not None
                    assert (told.offset, told.result) == (at, result.result)
            assert find_item(self.engine, self.queue(name), bytes(16)).found is None


def all_of(view: View) -> tuple[list[list[ItemInfo]], Results]:
    """The items of each state and the results that are there, as the view shows them."""
    items = [look(view, state, b"", 1000, MIB)[0] for state in STATES]
    return items, results_of(view, 0, 1000, MIB)


def every_lease(queue: QueueState, limit: int) -> list[LeaseInfo]:
    listed, more = queue.leases.page(b"", limit)
    while more:
        page, more = queue.leases.page(listed[-1].lease_id, limit)
        listed += page
    return listed


def every_batch(queue: QueueState, limit: int) -> list[BatchInfo]:
    listed, more = queue.batches.page(queue.counters.last_batch + 1, limit)
    while more:
        page, more = queue.batches.page(listed[-1].number, limit)
        listed += page
    return listed


def as_lists(added: Added) -> tuple[list[bytes], list[bool], bool]:
    return list(added.ids), list(added.duplicates), added.is_repeat


TestEngineAgainstModel = EngineAgainstModel.TestCase
TestEngineAgainstModel.settings = settings(
    max_examples=EXAMPLES, stateful_step_count=60, deadline=None
)
