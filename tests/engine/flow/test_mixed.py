"""All that delays, holds back, joins and ends items, mixed at random on one queue: the rules of the
store hold at every moment, and in the end nothing is left waiting for what is over."""

import os
from contextlib import suppress
from random import Random

import pytest

from queueber.db.families import Family
from queueber.engine.integrity.check_store import check_store
from queueber.engine.queue.find import id_of_key
from queueber.errors import FailedPrecondition, InvalidArgument, NotFound
from queueber.model import Callback, ItemOptions, ItemState, NewItems, Polled, QueueSettings
from tests.support.callbacks import batches_called_back, when_complete
from tests.support.operations import (
    cancel,
    cancel_batch,
    cancel_key,
    configure_queue,
    create_queue,
    forget_batches,
    peek,
    purge,
    receipt,
    redrive_first,
    reschedule,
)
from tests.support.rig import QUEUE, Rig

SEEDS = int(os.environ.get("QUEUEBER_TEST_EXAMPLES", "40")) // 8
STEPS = 60
REPORTS = "reports"
BATCHES, KEYS, CUSTOMERS = ("red", "green", "blue"), ("k", "l", "m"), ("ann", "bob")
STATES = (ItemState.READY, ItemState.DELAYED, ItemState.LEASED, ItemState.DEAD)
UNCAPPED = QueueSettings(attempts_max=2, backoff_ms=(15,), dedup_window_ms=60)
CAPPED = QueueSettings(
    attempts_max=2, backoff_ms=(15,), dedup_window_ms=60, cap_by="who", cap_by_concurrency_max=1,
    cap_by_rate_items=3, cap_by_rate_ms=40, concurrency_max=4,
)  # fmt: skip
FOR_ITEMS_THAT_WAIT = (
    Family.DELAYED, Family.VISIBILITY_INDEX, Family.LEASES, Family.LEASE_EXPIRY, Family.HOLDERS,
    Family.ITEM_EXPIRY, Family.WAITS, Family.PARKED,
)  # fmt: skip


class Mixed:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.rig = Rig(self.random.choice([UNCAPPED, CAPPED]))
        create_queue(self.rig.engine, REPORTS, QueueSettings(), self.rig.now_ms)
        self.ids: list[bytes] = []
        self.held: list[Polled] = []
        self.asked: set[str] = set()
        """Batches that got a callback and were not forgotten since."""

    def step(self) -> None:
        if self.random.random() < 0.6:
            self.work()
        else:
            self.operate()
        if self.random.random() < 0.5:
            self.rig.sweep_all()

    def work(self) -> None:
        rig, random = self.rig, self.random
        match random.choice(["add", "add", "add", "poll", "poll", "end", "end", "ask", "time"]):
            case "add":
                self.add(self.some())
            case "poll":
                self.held.append(rig.poll(random.randint(1, 5), lease_ms=random.choice([20, 500])))
            case "end" if self.held:
                self.end(self.held.pop(random.randrange(len(self.held))))
            case "ask":
                batch, contents = random.choice(BATCHES), random.choice([b"one", b"two"])
                with suppress(NotFound, FailedPrecondition):
                    callback = Callback(REPORTS, contents)
                    when_complete(rig.engine, rig.queue, batch, callback, rig.now_ms)
                    self.asked.add(batch)
            case "time":
                rig.now_ms += random.choice([1, 9, 33])

    def operate(self) -> None:
        rig, random = self.rig, self.random
        engine, queue, now_ms = rig.engine, rig.queue, rig.now_ms
        match random.choice(
            ["cancel", "key", "batch", "later", "purge", "redrive", "caps", "forget", "restart"]
        ):
            case "cancel":
                cancel(engine, queue, self.some(), now_ms)
            case "key":
                self.cancel_key(random.choice(KEYS))
            case "batch":
                state, batch = random.choice(STATES), random.choice(BATCHES)
                cancel_batch(engine, queue, batch, state, b"", 3, now_ms)
            case "later":
                reschedule(engine, queue, self.some(), random.choice([0, 10, 90]), now_ms)
            case "purge":
                purge(engine, queue, random.choice(STATES), 2, now_ms)
            case "redrive":
                redrive_first(engine, queue, 2, now_ms)
            case "caps" if not queue.counters.slots and not queue.counters.parked:
                configure_queue(engine, QUEUE, random.choice([UNCAPPED, CAPPED]), now_ms)
            case "forget":
                forget_batches(engine, queue, 0, 0, 10, now_ms)
                self.asked = {each for each in self.asked if self.is_known(each)}
            case "restart":
                rig.reopen()

    def some(self) -> list[bytes]:
        return self.random.sample(self.ids, min(len(self.ids), self.random.randint(1, 4)))

    def add(self, some: list[bytes]) -> None:
        random = self.random
        count = random.randint(1, 4)
        items = NewItems([b"%d" % at for at in range(count)])
        items.attributes = [{"who": random.choice(CUSTOMERS)} for _ in range(count)]
        if random.random() < 0.4:
            items.keys = [random.choice(KEYS) for _ in range(count)]
        if random.random() < 0.5:
            items.batch = random.choice(BATCHES)
        if random.random() < 0.3:
            items.delays_ms = [random.choice([0, 25]) for _ in range(count)]
        if random.random() < 0.4:
            own = [ItemOptions(1, (5,), 9), ItemOptions(expires_ms=40), ItemOptions(3)]
            items.options = [random.choice(own) for _ in range(count)]
        match random.choice(["", "", "ids", "batch"]):
            case "ids":
                items.after = some
            case "batch":
                items.after_batch = random.choice(BATCHES)
        # No such batch, or its own; a circle.
        with suppress(NotFound, InvalidArgument, FailedPrecondition):
            self.ids += self.rig.add_items(items).ids

    def end(self, polled: Polled) -> None:
        if polled.lease_id:
            rig, (ids, lease_id) = self.rig, (polled.ids, polled.lease_id)
            match self.random.choice(["complete", "complete", "remove", "fail", "release"]):
                case "complete":
                    rig.complete(ids, lease_id)
                case "remove":
                    rig.remove(ids, lease_id)
                case "fail":
                    rig.fail(ids, lease_id)
                case _:
                    rig.release(ids, lease_id)

    def cancel_key(self, key: str) -> None:
        """Whoever is found by the key is there no more."""
        rig = self.rig
        found = id_of_key(rig.store, rig.queue, key, rig.now_ms)
        was_there = found in self.there()
        assert cancel_key(rig.engine, rig.queue, key, rig.now_ms) == was_there

    def there(self) -> dict[bytes, str]:
        """The items of the queue, each with its key."""
        return {
            item.id: item.key
            for state in STATES
            for item in peek(self.rig.engine, self.rig.queue, state, b"", 1000, 1 << 30)[0]
        }

    def is_known(self, batch: str) -> bool:
        try:
            receipt(self.rig.engine, self.rig.queue, batch)
        except NotFound:
            return False
        return True

    def drain(self) -> None:
        """Work until nothing is left to be done."""
        rig = self.rig
        for _ in range(200):
            rig.now_ms += 500
            rig.sweep_all()
            polled = rig.poll(100)
            rig.complete(polled.ids, polled.lease_id)
            stats = rig.stats()
            if not stats.ready + stats.delayed + stats.leased + stats.callbacks:
                break


@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_rules_hold_and_nothing_is_left_waiting(seed: int) -> None:
    mixed = Mixed(seed)
    rig = mixed.rig
    for number in range(STEPS):
        mixed.step()
        if number % 15 == 0:
            assert check_store(rig.store) == []

    mixed.drain()
    rig.reopen()

    rig.assert_sound()
    dumped = rig.dump()
    prefix = rig.queue.prefix
    left = {
        family.family_name: [key for key, _ in dumped[family.family_name] if key[:4] == prefix]
        for family in FOR_ITEMS_THAT_WAIT
    }
    assert not any(left.values()), left
    called_back = batches_called_back(rig.engine, REPORTS)
    for batch in mixed.asked:
        assert receipt(rig.engine, rig.queue, batch).complete
        assert batch in called_back
    rig.close()
