"""Workflows beside what else happens to items, batches and queues."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from queueber.db.store.rocks import RocksStore
from queueber.db.upgrade.stores import Work
from queueber.db.upgrade.upgrading import upgrade
from queueber.engine.integrity.check_store import check_store
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.open import open_engine
from queueber.engine.queue.drop import drop
from queueber.engine.queue.queue_state import QueueTx
from queueber.engine.queue.settle import Outcomes
from queueber.engine.topics.together import QueueStep, together
from queueber.errors import NotFound
from queueber.ids import IdSource
from queueber.limits import DEAD_READ_REST_MS
from queueber.model import Callback, ItemState, NewItems, QueueSettings, callback_receipt
from tests.support import operations
from tests.support.callbacks import batches_called_back, called_back, when_complete
from tests.support.format_4 import NOW_MS, random_queue, write_store
from tests.support.operations import (
    cancel,
    configure_queue,
    create_queue,
    delete_queue,
    peek,
    purge,
    reclaim_slices,
    reclaimed,
)
from tests.support.rig import QUEUE, Rig

REPORTS = "reports"
REPORT = Callback(REPORTS, b"report")
ONE_ATTEMPT = QueueSettings(attempts_max=1, backoff_ms=(0,))


@pytest.fixture
def rig() -> Iterator[Rig]:
    made = Rig(ONE_ATTEMPT)
    create_queue(made.engine, REPORTS, QueueSettings(), made.now_ms)
    yield made
    assert check_store(made.store) == []
    made.close()


def wait_for(rig: Rig, *ids: bytes, after_batch: str = "") -> bytes:
    items = NewItems([b"w"], priorities=[0], after=ids, after_batch=after_batch)
    (waiter,) = rig.add_items(items).ids
    return waiter


def ids_of(rig: Rig, state: ItemState) -> list[bytes]:
    return [item.id for item in peek(rig.engine, rig.queue, state, b"", 1000, 1 << 30)[0]]


def die(rig: Rig) -> bytes:
    polled = rig.poll()
    rig.fail(polled.ids, polled.lease_id)
    return polled.ids[0]


def done(rig: Rig, count: int = 1) -> None:
    polled = rig.poll(count)
    assert rig.complete(polled.ids, polled.lease_id) == [True] * count


@pytest.mark.parametrize("how", ["dropped of its age", "purged", "cancelled"])
def test_a_dead_letter_that_is_gone_before_the_sweep_has_died(rig: Rig, how: str) -> None:
    (first,) = rig.add(b"a")
    before = wait_for(rig, first)
    assert die(rig) == first
    wait_for(rig, first)
    if how == "purged":
        assert purge(rig.engine, rig.queue, ItemState.DEAD, 9, rig.now_ms) == (1, False)
    elif how == "cancelled":
        assert cancel(rig.engine, rig.queue, [first], rig.now_ms) == [True]
    else:
        settings = replace(rig.queue.settings, dead_age_ms=1)
        configure_queue(rig.engine, QUEUE, settings, rig.now_ms)
        rig.now_ms += 1 + DEAD_READ_REST_MS
        operations.run(rig.engine, rig.queue, rig.now_ms, _drop_dead)
    assert rig.stats().dead == 0
    after = wait_for(rig, first)
    assert check_store(rig.store) == []
    configure_queue(rig.engine, QUEUE, ONE_ATTEMPT, rig.now_ms)
    rig.sweep_all()

    assert before in ids_of(rig, ItemState.DEAD)
    assert ids_of(rig, ItemState.READY) == [after]
    assert rig.stats().waiting == 0


def _drop_dead(tx: QueueTx) -> None:
    assert drop(tx, 1000).moved == 1


def test_items_that_wait_go_with_their_queue(rig: Rig) -> None:
    (first,) = rig.add(b"a")
    wait_for(rig, first)
    rig.add_items(NewItems([b"b"], batch="b"))
    when_complete(rig.engine, rig.queue, "b", REPORT, rig.now_ms)
    die(rig)
    prefix = rig.queue.prefix
    delete_queue(rig.engine, QUEUE)
    for reclaim in reclaim_slices(rig.engine, prefix):
        reclaim()
    reclaimed(rig.engine, prefix)
    create_queue(rig.engine, QUEUE, ONE_ATTEMPT, rig.now_ms)
    rig.reopen()

    assert rig.dump()["waits"] == rig.dump()["waited_for"] == rig.dump()["callbacks"] == []
    with pytest.raises(NotFound):
        wait_for(rig, first)
    (second,) = rig.add(b"a")
    waiter = wait_for(rig, second)
    done(rig)
    rig.sweep_all()
    assert ids_of(rig, ItemState.READY) == [waiter]
    assert rig.stats().waiting == rig.stats().callbacks == 0


def test_what_is_done_together_completes_a_batch_once(rig: Rig) -> None:
    rig.add_items(NewItems([b"a"], batch="b"))
    when_complete(rig.engine, rig.queue, "b", REPORT, rig.now_ms)
    waiter = wait_for(rig, after_batch="b")
    for add in (NewItems([b"more"], batch="b"), None):
        polled = rig.poll()
        outcomes = Outcomes(list(polled.ids), [polled.lease_id], [b""])
        step = QueueStep(rig.queue, add, outcomes)
        tx: Transaction[None] = Transaction(rig.engine.kernel, rig.now_ms, None)
        together(tx, rig.engine.topics, [], [], [step])
        assert ids_of(rig, ItemState.DELAYED) == [waiter]
        tx.commit()
        rig.sweep_all()
        is_over = add is None
        assert batches_called_back(rig.engine, REPORTS) == (["b"] if is_over else [])
        assert (waiter in ids_of(rig, ItemState.READY)) == is_over

    (item,) = called_back(rig.engine, REPORTS)
    assert callback_receipt(item.attributes).added == 2


def test_items_of_callbacks_that_are_gone_are_not_added_again(rig: Rig) -> None:
    rig.add_items(NewItems([b"a"], batch="b"))
    when_complete(rig.engine, rig.queue, "b", REPORT, rig.now_ms)
    done(rig)
    rig.sweep_all()
    reports = rig.engine.queues.get(REPORTS)
    assert purge(rig.engine, reports, ItemState.READY, 9, rig.now_ms) == (1, False)
    when_complete(rig.engine, rig.queue, "b", REPORT, rig.now_ms)
    rig.reopen()
    rig.sweep_all()
    assert called_back(rig.engine, REPORTS) == []

    delete_queue(rig.engine, REPORTS)
    create_queue(rig.engine, REPORTS, QueueSettings(), rig.now_ms)
    when_complete(rig.engine, rig.queue, "b", REPORT, rig.now_ms)
    rig.sweep_all()
    assert called_back(rig.engine, REPORTS) == []


def test_a_store_of_format_4_has_workflows_once_it_is_upgraded(tmp_path: Path) -> None:
    old = random_queue(Random(7), 1, groups=4)
    write_store(tmp_path / "data", [old])
    upgrade(tmp_path / "data", Work(NOW_MS), lambda store: [str(v) for v in check_store(store)])
    now_ms = NOW_MS + 1
    chosen = {
        state: [item.item_id for item in old.in_state(state)][:3]
        for state in ("ready", "delayed", "leased", "dead")
    }
    live = sorted({b for item in old.items if (b := item.batch) and item.state != "dead"})
    with RocksStore(tmp_path / "data") as store:
        engine = open_engine(store, IdSource(Random(1)))
        create_queue(engine, REPORTS, QueueSettings(), now_ms)
        queue = engine.queues.get(old.name)
        for ids in chosen.values():
            for each in ids:
                operations.add(engine, queue, NewItems([b"w"], after=[each]), now_ms)
        names = [old.batches[number].name for number in live]
        for name in names:
            when_complete(engine, queue, name, REPORT, now_ms)
            operations.add(engine, queue, NewItems([b"b"], after_batch=name), now_ms)
        assert check_store(store) == []
        cancel(engine, queue, [item.item_id for item in old.items], now_ms)
        while operations.sweep(engine, now_ms) is not None:
            pass

        assert check_store(store) == []
        dead = peek(engine, queue, ItemState.DEAD, b"", 1000, 1 << 30)[0]
        ready = peek(engine, queue, ItemState.READY, b"", 1000, 1 << 30)[0]
        assert sum(map(len, chosen.values())) == len(dead) > 4
        assert [item.contents for item in ready] == [b"b"] * len(names)
        assert sorted(batches_called_back(engine, REPORTS)) == sorted(names) != []
        assert queue.counters.waiting == queue.counters.callbacks == 0
