"""Callbacks: the item of a complete batch is added once, with its receipt, in one write."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from queueber.db.records.keys import NEVER_MS
from queueber.engine.integrity.check_store import check_store
from queueber.errors import FailedPrecondition, NotFound, ResourceExhausted, Unavailable
from queueber.limits import BATCH_KEEP_MS, CALLBACK_RETRY_MS
from queueber.model import (
    Callback,
    CallbackInfo,
    ItemOptions,
    NewItems,
    QueueSettings,
    callback_receipt,
)
from tests.engine.making import allow_attempts
from tests.support.callbacks import batches_called_back, called_back, when_complete
from tests.support.operations import (
    add,
    cancel,
    configure_queue,
    create_queue,
    delete_queue,
    forget_batch,
    redrive,
)
from tests.support.rig import QUEUE, START_MS, Rig, refuse_write

REPORTS = "reports"
REPORT = Callback(REPORTS, b"report", priority=7, attributes={"a": "b"})


@pytest.fixture
def rig() -> Iterator[Rig]:
    made = Rig()
    create_queue(made.engine, REPORTS, QueueSettings(), made.now_ms)
    yield made
    assert check_store(made.store) == []
    made.close()


def add_batch(rig: Rig, batch: str = "b", items: int = 3) -> list[bytes]:
    return list(rig.add_items(NewItems([b"x"] * items, batch=batch)).ids)


def ask(rig: Rig, batch: str = "b", callback: Callback = REPORT) -> CallbackInfo:
    return when_complete(rig.engine, rig.queue, batch, callback, rig.now_ms)


def describe(rig: Rig, batch: str = "b") -> CallbackInfo:
    return rig.engine.flow.callbacks(rig.queue).describe(batch)


def work(rig: Rig, count: int = 3) -> None:
    polled = rig.poll(count)
    assert all(rig.complete(polled.ids, polled.lease_id))


def test_item_is_added_when_the_last_one_ends_and_carries_the_receipt(rig: Rig) -> None:
    add_batch(rig)
    assert ask(rig) == CallbackInfo("b", REPORTS, START_MS)
    work(rig, 2)
    rig.sweep_all()
    assert called_back(rig.engine, REPORTS) == []
    work(rig, 1)
    rig.sweep_all()

    (item,) = called_back(rig.engine, REPORTS)
    receipt = rig.queue.batches.receipt("b")
    assert receipt.complete
    assert callback_receipt(item.attributes) == receipt
    assert (item.contents, item.priority) == (b"report", 7)
    assert item.attributes["a"] == "b"
    assert item.attributes["queueber.queue"] == QUEUE
    assert describe(rig).item_id == item.id
    assert rig.queue.counters.callbacks == 0


def test_dead_items_are_in_the_receipt(rig: Rig) -> None:
    ids = add_batch(rig)
    ask(rig)
    cancel(rig.engine, rig.queue, ids[:1], rig.now_ms)
    work(rig)
    rig.sweep_all()

    (item,) = called_back(rig.engine, REPORTS)
    receipt = callback_receipt(item.attributes)
    assert (receipt.added, receipt.done, receipt.dead, receipt.live) == (3, 2, 1, 0)


def test_complete_batch_adds_at_once(rig: Rig) -> None:
    add_batch(rig)
    work(rig)

    info = ask(rig)

    (item,) = called_back(rig.engine, REPORTS)
    assert info.item_id == item.id
    assert rig.queue.counters.callbacks == 0


def test_item_may_go_to_the_queue_of_the_batch(rig: Rig) -> None:
    add_batch(rig)
    ask(rig, callback=replace(REPORT, to=QUEUE))
    work(rig)
    rig.sweep_all()

    assert batches_called_back(rig.engine, QUEUE) == ["b"]


def test_repeated_calls_sweeps_and_restarts_add_it_once(rig: Rig) -> None:
    add_batch(rig)
    for _ in range(3):
        ask(rig)
        rig.reopen()
    work(rig)
    rig.reopen()
    rig.sweep_all()
    infos = {ask(rig)}
    rig.reopen()
    rig.sweep_all()

    (item,) = called_back(rig.engine, REPORTS)
    assert {*infos, ask(rig)} == {CallbackInfo("b", REPORTS, START_MS, item.id)}


def test_what_is_added_to_the_batch_afterwards_adds_nothing_more(rig: Rig) -> None:
    add_batch(rig)
    ask(rig)
    work(rig)
    rig.sweep_all()
    add_batch(rig)
    work(rig)
    rig.sweep_all()

    assert batches_called_back(rig.engine, REPORTS) == ["b"]


def test_batch_that_gets_live_items_before_the_sweep_waits_for_them(rig: Rig) -> None:
    allow_attempts(rig, 1)
    add_batch(rig, items=1)
    ask(rig)
    polled = rig.poll()
    rig.fail(polled.ids, polled.lease_id)
    redrive(rig.engine, rig.queue, polled.ids, rig.now_ms)
    rig.sweep_all()

    assert called_back(rig.engine, REPORTS) == []
    work(rig, 1)
    rig.sweep_all()
    (item,) = called_back(rig.engine, REPORTS)
    assert callback_receipt(item.attributes).done == 1


def test_another_callback_takes_the_place_of_one_that_waits(rig: Rig) -> None:
    add_batch(rig)
    ask(rig)
    ask(rig, callback=replace(REPORT, contents=b"other"))
    work(rig)
    rig.sweep_all()

    assert [item.contents for item in called_back(rig.engine, REPORTS)] == [b"other"]
    with pytest.raises(FailedPrecondition, match="has added item"):
        ask(rig)


def test_full_queue_gets_the_items_once_there_is_room(rig: Rig) -> None:
    configure_queue(rig.engine, REPORTS, QueueSettings(items_max=1), rig.now_ms)
    for name in ("a", "b"):
        add_batch(rig, name)
        ask(rig, name)
    work(rig, 6)
    rig.sweep_all()

    assert batches_called_back(rig.engine, REPORTS) == ["a"]
    assert "1 more would pass its limit of 1" in describe(rig).problem
    assert rig.engine.agenda.next_ms() == START_MS + CALLBACK_RETRY_MS
    with pytest.raises(FailedPrecondition, match="was not added yet"):
        forget_batch(rig.engine, rig.queue, "b", rig.now_ms)
    configure_queue(rig.engine, REPORTS, QueueSettings(), rig.now_ms)
    rig.now_ms += CALLBACK_RETRY_MS
    rig.sweep_all()

    assert batches_called_back(rig.engine, REPORTS) == ["a", "b"]
    assert describe(rig).problem == ""


def test_complete_batch_whose_queue_is_full_is_told_and_waits(rig: Rig) -> None:
    configure_queue(rig.engine, REPORTS, QueueSettings(bytes_max=1), rig.now_ms)
    add_batch(rig)
    work(rig)

    info = ask(rig)

    assert "would pass its limit of 1" in info.problem
    assert (info.item_id, rig.queue.counters.callbacks) == (b"", 1)
    assert ask(rig, callback=replace(REPORT, to=QUEUE)).item_id


def _fill(rig: Rig) -> None:
    configure_queue(rig.engine, REPORTS, QueueSettings(items_max=1), rig.now_ms)
    add(rig.engine, rig.engine.queues.get(REPORTS), NewItems([b"x"]), rig.now_ms)


def _freeze_keys(rig: Rig) -> None:
    rig.engine.queues.get(REPORTS).keys.is_frozen = True


def _delete(rig: Rig) -> None:
    delete_queue(rig.engine, REPORTS)


def _limit_items(rig: Rig) -> None:
    configure_queue(rig.engine, REPORTS, QueueSettings(item_bytes_max=1), rig.now_ms)


@pytest.mark.parametrize("refuse", [_fill, _freeze_keys, _delete, _limit_items])
def test_refused_items_leave_nothing_behind(rig: Rig, refuse: Callable[[Rig], None]) -> None:
    for name in ("a", "b"):
        add_batch(rig, name, 1)
        ask(rig, name, replace(REPORT, key=name))
    work(rig, 2)
    refuse(rig)
    before = rig.dump()
    for _ in range(3):
        rig.sweep_all()
        rig.now_ms += CALLBACK_RETRY_MS

    assert rig.dump() == before
    assert describe(rig, "a").problem != "" != describe(rig, "b").problem


def test_item_that_is_too_large_holds_up_no_other(rig: Rig) -> None:
    for name, contents in (("large", b"x" * 100), ("small", b"x")):
        add_batch(rig, name)
        ask(rig, name, replace(REPORT, contents=contents))
    configure_queue(rig.engine, REPORTS, QueueSettings(item_bytes_max=50), rig.now_ms)
    work(rig, 6)
    rig.sweep_all()
    rig.now_ms += CALLBACK_RETRY_MS
    rig.sweep_all()

    assert batches_called_back(rig.engine, REPORTS) == ["small"]


def test_queue_that_was_deleted_gets_the_item_when_it_is_there_again(rig: Rig) -> None:
    add_batch(rig)
    ask(rig)
    delete_queue(rig.engine, REPORTS)
    work(rig)
    rig.sweep_all()

    assert "there is no queue 'reports'" in describe(rig).problem
    create_queue(rig.engine, REPORTS, QueueSettings(), rig.now_ms)
    rig.now_ms += CALLBACK_RETRY_MS
    rig.sweep_all()
    assert batches_called_back(rig.engine, REPORTS) == ["b"]


def test_callbacks_are_deleted_with_their_queue(rig: Rig) -> None:
    add_batch(rig)
    ask(rig)
    delete_queue(rig.engine, QUEUE)
    create_queue(rig.engine, QUEUE, QueueSettings(), rig.now_ms)
    add_batch(rig)
    work(rig)
    rig.sweep_all()

    assert called_back(rig.engine, REPORTS) == []


def test_a_key_that_is_known_adds_nothing(rig: Rig) -> None:
    for name in ("a", "b"):
        add_batch(rig, name)
        ask(rig, name, replace(REPORT, key="daily"))
    work(rig, 6)
    rig.sweep_all()

    assert batches_called_back(rig.engine, REPORTS) == ["a"]
    assert describe(rig, "a").item_id == describe(rig, "b").item_id != b""


def test_refused_write_changes_nothing(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    add_batch(rig)
    ask(rig)
    work(rig)
    before = rig.dump()
    with monkeypatch.context() as fault:
        fault.setattr(rig.store, "write", refuse_write)
        with pytest.raises(Unavailable):
            rig.sweep_all()

    assert rig.dump() == before
    rig.now_ms += 1000
    rig.sweep_all()
    assert batches_called_back(rig.engine, REPORTS) == ["b"]


def test_forgotten_batch_takes_its_callback_with_it(rig: Rig) -> None:
    add_batch(rig)
    ask(rig)
    work(rig)
    rig.sweep_all()
    forget_batch(rig.engine, rig.queue, "b", rig.now_ms)

    assert rig.dump()["callbacks"] == []
    assert rig.queue.counters.callback_records == 0


def test_batch_is_not_forgotten_before_its_callback(rig: Rig) -> None:
    configure_queue(rig.engine, REPORTS, QueueSettings(bytes_max=1), rig.now_ms)
    add_batch(rig)
    ask(rig)
    work(rig)
    for _ in range(3):
        rig.now_ms += BATCH_KEEP_MS
        rig.sweep_all()

    assert rig.queue.batches.receipt("b").complete
    configure_queue(rig.engine, REPORTS, QueueSettings(), rig.now_ms)
    rig.now_ms += BATCH_KEEP_MS
    rig.sweep_all()
    assert batches_called_back(rig.engine, REPORTS) == ["b"]
    rig.now_ms += BATCH_KEEP_MS
    rig.sweep_all()
    with pytest.raises(NotFound):
        rig.queue.batches.receipt("b")


def test_unknown_and_empty_batches_are_refused(rig: Rig) -> None:
    with pytest.raises(NotFound, match="knows no batch 'b'"):
        ask(rig)
    rig.add_items(NewItems([b"x"], keys=["k"]))
    rig.add_items(NewItems([b"x"], keys=["k"], batch="b"))
    before = rig.dump()
    with pytest.raises(FailedPrecondition, match="'b' of queue 'q' has no items"):
        ask(rig)
    assert rig.dump() == before


def test_queue_has_a_limit_of_callbacks(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("queueber.engine.flow.callbacks.CALLBACKS_MAX", 1)
    for name in ("a", "b"):
        add_batch(rig, name)
    ask(rig, "a")
    with pytest.raises(ResourceExhausted, match="has 1 callbacks"):
        ask(rig, "b")
    ask(rig, "a", replace(REPORT, contents=b"other"))


def test_many_batches_at_once_are_called_back_each_once(rig: Rig) -> None:
    names = [f"b{number}" for number in range(250)]
    for name in names:
        add_batch(rig, name, 1)
        ask(rig, name)
    work(rig, 250)
    rig.sweep_all()

    assert sorted(batches_called_back(rig.engine, REPORTS)) == sorted(names)
    assert rig.engine.agenda.next_ms() > START_MS


def test_queue_without_callbacks_has_none_due(rig: Rig) -> None:
    add_batch(rig)
    work(rig)

    assert rig.queue.callbacks is not None
    assert rig.queue.callbacks.due_ms() == NEVER_MS
    with pytest.raises(NotFound, match="has no callback"):
        describe(rig)


def test_item_has_what_the_callback_says_of_its_own(rig: Rig) -> None:
    own = ItemOptions(1, (5,), 7000, expires_ms=600)
    add_batch(rig)
    ask(rig, callback=replace(REPORT, options=own))
    add_batch(rig, "other")
    ask(rig, "other")
    rig.reopen()
    work(rig, 6)
    rig.now_ms += 9
    rig.sweep_all()

    item, other = called_back(rig.engine, REPORTS)
    assert (item.attempts_max, item.backoff_ms, item.timeout_ms) == (1, (5,), 7000)
    assert item.expires_at_ms == rig.now_ms + 600
    assert (other.attempts_max, other.expires_at_ms) == (None, 0)
    # A repeated call knows it by them.
    ask(rig, callback=replace(REPORT, options=own))
    with pytest.raises(FailedPrecondition, match="has added item"):
        ask(rig)
