"""Workflows against a model of plain dictionaries, with restarts, crashes and lost writes."""

import os
from dataclasses import dataclass, field
from itertools import count
from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from queueber.db.store.rocks import RocksStore
from queueber.engine.integrity.check_store import check_store
from queueber.engine.open import open_engine
from queueber.errors import FailedPrecondition, NotFound, Unavailable
from queueber.ids import IdSource
from queueber.limits import CALLBACK_RETRY_MS
from queueber.model import (
    NO_OPTIONS,
    Callback,
    ItemOptions,
    ItemState,
    NewItems,
    QueueSettings,
    callback_receipt,
)
from tests.support.callbacks import called_back, when_complete
from tests.support.folders import copy_open_store, quick_folder, remove_folder
from tests.support.operations import (
    add,
    cancel,
    complete,
    configure_queue,
    create_queue,
    fail,
    forget_batch,
    peek,
    poll,
    redrive,
    sweep,
)
from tests.support.rig import START_MS, refuse_write

pytestmark = pytest.mark.slow

QUEUES = ("q", "r")
SETTINGS = QueueSettings(attempts_max=1, backoff_ms=(0,))
OPTIONS = {b"one": NO_OPTIONS, b"two": ItemOptions(7)}
"""What the item of a callback has of its own, by its contents."""
FULL = QueueSettings(attempts_max=1, backoff_ms=(0,), bytes_max=1)
EXAMPLES = int(os.environ.get("QUEUEBER_TEST_EXAMPLES", "40"))
queues = st.sampled_from(QUEUES)
names = st.sampled_from(["a", "b"])
What = bytes | int
"""An item, or the number of a batch in the model."""
KEEPER = "keeper"
"""Gets the items of all callbacks, and nobody polls it."""


@dataclass
class ModelBatch:
    number: int
    live: set[bytes] = field(default_factory=set)
    dead: set[bytes] = field(default_factory=set)
    done: int = 0
    asked: bytes | None = None
    """The contents of its callback."""
    called_back: bool = False

    @property
    def is_complete(self) -> bool:
        return not self.live

    @property
    def counts(self) -> tuple[int, int, int]:
        return len(self.live) + len(self.dead) + self.done, self.done, len(self.dead)


class FlowAgainstModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = quick_folder()
        self.generation = 0
        self.now_ms = START_MS
        self.batches: dict[tuple[str, str], ModelBatch] = {}
        self.added: list[tuple[str, str, bytes, tuple[int, int, int]]] = []
        """Of each callback: queue and batch, contents, and what its receipt must say."""
        self.is_full = False
        self.waits: dict[bytes, set[What]] = {}
        """What each item waits for that waits."""
        self.notes: dict[str, list[tuple[frozenset[What], frozenset[bytes], bool]]]
        self.notes = {queue: [] for queue in QUEUES}
        """Ends that no sweep has seen: of what, who waited for it then, and whether it is done."""
        self.numbers = count(1)
        self.is_swept = True
        self.letters: dict[str, set[bytes]] = {queue: set() for queue in QUEUES}
        self.done: dict[str, set[bytes]] = {queue: set() for queue in QUEUES}
        self._open(self.folder / "0")
        for queue in (*QUEUES, KEEPER):
            create_queue(self.engine, queue, SETTINGS, self.now_ms)

    def _open(self, path: object) -> None:
        self.store = RocksStore(path)  # type: ignore[arg-type]
        self.engine = open_engine(self.store, IdSource(Random(self.generation)))

    def teardown(self) -> None:
        self.store.close()
        remove_folder(self.folder)

    # --- work -------------------------------------------------------------------------------------

    @rule(queue=queues, name=names, count=st.integers(1, 3))
    def add(self, queue: str, name: str, count: int) -> None:
        items = NewItems([b"x"] * count, batch=name)
        ids = add(self.engine, self.engine.queues.get(queue), items, self.now_ms).ids
        self._batch(queue, name).live.update(ids)

    def _batch(self, queue: str, name: str) -> ModelBatch:
        known = self.batches.get((queue, name))
        if known is None:
            known = self.batches[queue, name] = ModelBatch(next(self.numbers))
        return known

    @rule(queue=queues, name=names, data=st.data(), of=st.sampled_from(["items", "batch"]))
    def add_after(self, queue: str, name: str, data: st.DataObject, of: str) -> None:
        live = {each for known in self._of(queue) for each in known.live}
        there = sorted(live | self.letters[queue] | self.done[queue])
        items = NewItems([b"x"], batch=name)
        whats: set[What] = set()
        if of == "batch":
            other = "b" if name == "a" else "a"
            if (queue, other) not in self.batches:
                return
            items.after_batch = other
            if not self.batches[queue, other].is_complete:
                whats.add(self.batches[queue, other].number)
        elif there:
            items.after = data.draw(st.lists(st.sampled_from(there), min_size=1, max_size=3))
            whats.update(set(items.after) - self.done[queue])
        state = self.engine.queues.get(queue)
        if self._is_circle(queue, name, whats):
            with pytest.raises(FailedPrecondition, match="would wait for itself"):
                add(self.engine, state, items, self.now_ms)
            return
        (waiter,) = add(self.engine, state, items, self.now_ms).ids
        self._batch(queue, name).live.add(waiter)
        if whats:
            self.waits[waiter] = whats
        for each in sorted(self.letters[queue] & whats):
            self._note(queue, {each}, is_done=False)
        self._sweep_or_not()

    def _is_circle(self, queue: str, name: str, whats: set[What]) -> bool:
        """Whether what an item of the batch is to wait for waits for the batch."""
        batch = self.batches.get((queue, name))
        left, seen = list(whats), set[What]()
        while left and batch is not None:
            what = left.pop()
            if what == batch.number:
                return True
            if what not in seen:
                seen.add(what)
                if isinstance(what, bytes):
                    left += self.waits.get(what, ())
                else:
                    left += [
                        i for each in self._of(queue) if each.number == what for i in each.live
                    ]
        return False

    @rule(queue=queues, count=st.integers(1, 4), is_done=st.booleans())
    def work(self, queue: str, count: int, is_done: bool) -> None:
        state = self.engine.queues.get(queue)
        (polled,) = poll(
            self.engine, state, [count], lease_ms=1000, answer_bytes_max=1 << 20, now_ms=self.now_ms
        )
        ids, leases = list(polled.ids), [polled.lease_id] * len(polled.ids)
        assert not self.waits.keys() & set(ids), "an item was leased that waits"
        if is_done:
            complete(self.engine, state, ids, leases, [b""] * len(ids), self.now_ms)
        else:
            fail(self.engine, state, ids, leases, ["e"] * len(ids), [None] * len(ids), self.now_ms)
        (self.done if is_done else self.letters)[queue].update(ids)
        self._ended(queue, set(ids), is_done=is_done)
        self._sweep_or_not()

    @rule(queue=queues, data=st.data(), is_redriven=st.booleans())
    def operate(self, queue: str, data: st.DataObject, is_redriven: bool) -> None:
        state = self.engine.queues.get(queue)
        letters = self.letters[queue]
        live = {each for known in self._of(queue) for each in known.live}
        there = letters if is_redriven else live | letters
        if not there:
            return
        chosen = data.draw(st.sampled_from(sorted(there)))
        if is_redriven:
            assert redrive(self.engine, state, [chosen], self.now_ms) == 1
        else:
            assert cancel(self.engine, state, [chosen], self.now_ms) == [True]
        was_dead = chosen in letters
        letters.discard(chosen)
        for known in self._of(queue):
            if chosen in known.dead and is_redriven:
                known.dead.remove(chosen)
                known.live.add(chosen)
        if not is_redriven:
            self.waits.pop(chosen, None)
            self.done[queue].add(chosen)  # nobody knows any more what became of it
            if not was_dead:
                self._ended(queue, {chosen}, is_done=False)
        self._sweep_or_not()

    def _ended(self, queue: str, ids: set[bytes], *, is_done: bool) -> None:
        """Items are done or dead, and perhaps their batches complete. Who waits learns of it at the
        next sweep."""
        self._note(queue, set(ids), is_done=is_done)
        for known in self._of(queue):
            if ended := known.live & ids:
                known.live -= ended
                if is_done:
                    known.done += len(ended)
                else:
                    known.dead |= ended
                if known.is_complete:
                    self._note(queue, {known.number}, is_done=True)

    def _note(self, queue: str, ended: set[What], *, is_done: bool) -> None:
        about = frozenset(w for w, whats in self.waits.items() if not whats.isdisjoint(ended))
        self.notes[queue].append((frozenset(ended), about, is_done))

    def _let_go(self) -> None:
        for queue, notes in self.notes.items():
            while notes:
                ended, about, is_done = notes.pop(0)
                for waiter in sorted(about & self.waits.keys()):
                    if self.waits[waiter].isdisjoint(ended):
                        continue
                    self.waits[waiter] -= ended
                    if not is_done:
                        del self.waits[waiter]
                        self.letters[queue].add(waiter)
                        self._ended(queue, {waiter}, is_done=False)
                    elif not self.waits[waiter]:
                        del self.waits[waiter]

    def _of(self, queue: str) -> list[ModelBatch]:
        return [known for (of, _), known in self.batches.items() if of == queue]

    # --- callbacks --------------------------------------------------------------------------------

    @rule(queue=queues, name=names, contents=st.sampled_from([b"one", b"two"]))
    def ask(self, queue: str, name: str, contents: bytes) -> None:
        known = self.batches.get((queue, name))
        state, callback = (
            self.engine.queues.get(queue),
            Callback(KEEPER, contents, options=OPTIONS[contents]),
        )
        if known is None:
            with pytest.raises(NotFound):
                when_complete(self.engine, state, name, callback, self.now_ms)
        elif known.called_back and known.asked != contents:
            with pytest.raises(FailedPrecondition):
                when_complete(self.engine, state, name, callback, self.now_ms)
        else:
            is_repeated = known.asked == contents
            info = when_complete(self.engine, state, name, callback, self.now_ms)
            known.asked = contents
            if known.is_complete and not known.called_back and not self.is_full and not is_repeated:
                self._call_back(queue, name, known)
            assert bool(info.item_id) == known.called_back

    @rule(queue=queues, name=names)
    def forget(self, queue: str, name: str) -> None:
        known = self.batches.get((queue, name))
        if known is None:
            return
        state = self.engine.queues.get(queue)
        if known.live or (known.asked is not None and not known.called_back):
            with pytest.raises(FailedPrecondition):
                forget_batch(self.engine, state, name, self.now_ms)
        else:
            assert forget_batch(self.engine, state, name, self.now_ms)
            self._note(queue, {known.number}, is_done=False)
            del self.batches[queue, name]
            # Its dead letters belong to no batch any more.

    @rule(is_full=st.booleans())
    def room(self, is_full: bool) -> None:
        self.is_full = is_full
        configure_queue(self.engine, KEEPER, FULL if is_full else SETTINGS, self.now_ms)

    @rule()
    def time_passes(self) -> None:
        self._sweep()

    @rule(is_swept=st.booleans())
    def sweeper_comes_after_each_call_or_seldom(self, is_swept: bool) -> None:
        self.is_swept = is_swept

    def _sweep_or_not(self) -> None:
        if self.is_swept:
            self._sweep()

    @rule(is_crash=st.booleans())
    def server_restarts(self, is_crash: bool) -> None:
        self.generation += 1
        path = self.folder / str(self.generation)
        if is_crash:
            copy_open_store(self.folder / str(self.generation - 1), path)
            self.store.close()
        else:
            self.store.close()
            (self.folder / str(self.generation - 1)).rename(path)
        self._open(path)
        self._sweep()

    @rule()
    def disk_is_full(self) -> None:
        with pytest.MonkeyPatch.context() as fault:
            fault.setattr(self.store, "write", refuse_write)
            try:
                self._sweep_engine()
            except Unavailable:
                self.now_ms += 1000  # the engine tries again after a while

    def _sweep(self) -> None:
        self.now_ms += 2 * CALLBACK_RETRY_MS
        self._sweep_engine()
        self._let_go()
        for (queue, name), known in self.batches.items():
            is_due = known.asked is not None and not known.called_back and known.is_complete
            if is_due and not self.is_full:
                self._call_back(queue, name, known)

    def _sweep_engine(self) -> None:
        while sweep(self.engine, self.now_ms) is not None:
            pass

    def _call_back(self, queue: str, name: str, known: ModelBatch) -> None:
        known.called_back = True
        self.added.append((queue, name, known.asked or b"", known.counts))

    # --- what must hold ---------------------------------------------------------------------------

    @invariant()
    def every_callback_was_made_once_with_a_true_receipt(self) -> None:
        found = []
        for item in called_back(self.engine, KEEPER):
            assert item.attempts_max == OPTIONS[item.contents].attempts_max
            receipt = callback_receipt(item.attributes)
            counts = receipt.added, receipt.done, receipt.dead
            queue = item.attributes["queueber.queue"]
            found.append((queue, receipt.batch, item.contents, counts))
        assert sorted(found) == sorted(self.added)

    @invariant()
    def the_same_items_wait(self) -> None:
        for queue in QUEUES:
            state = self.engine.queues.get(queue)
            page, _ = peek(self.engine, state, ItemState.DELAYED, b"", 1000, 1 << 30)
            found = {item.id for item in page}
            live = {each for known in self._of(queue) for each in known.live}
            assert found == live & self.waits.keys()
            names = {
                known.number: name for (of, name), known in self.batches.items() if of == queue
            }
            for item in page:
                whats = self.waits[item.id]
                assert {*item.after} == {each for each in whats if isinstance(each, bytes)}
                numbers = [each for each in whats if isinstance(each, int)]
                assert [item.after_batch] == ([names.get(n, "") for n in numbers] or [""])
            assert state.counters.dead == len(self.letters[queue])

    @invariant()
    def store_is_sound(self) -> None:
        assert check_store(self.store) == []


TestFlowAgainstModel = FlowAgainstModel.TestCase
TestFlowAgainstModel.settings = settings(
    max_examples=EXAMPLES, stateful_step_count=30, deadline=None
)
