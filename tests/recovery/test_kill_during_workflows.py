"""A server killed with SIGKILL while items wait for others and batches are called back: each waiter
runs once, after what it waits for, and each callback adds one item."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import TypeVar

import pytest

import queueber
from queueber.db.store.rocks import RocksStore
from queueber.engine.integrity.check_store import check_store
from queueber.testing import ServerProcess, running_server

T = TypeVar("T")
KILLS = int(os.environ.get("QUEUEBER_TEST_KILLS", "5"))
STEPS, REPORTS = "steps", "reports"
LEASE_SECONDS = 1.0
"""A poll whose answer a kill has taken comes back soon."""

pytestmark = [pytest.mark.recovery, pytest.mark.timeout(120 + 15 * KILLS)]


def insist(call: Callable[[], T]) -> T:
    """Repeat a call whose answer a kill has taken."""
    while True:
        try:
            return call()
        except queueber.OutcomeUnknown:
            pass


@dataclass
class Work:
    """Somebody who fans out and somebody who works, neither of whom gives up."""

    address: str
    fan_out: Callable[[queueber.Queue, int], None]
    is_over: threading.Event = field(default_factory=threading.Event)
    is_fanned_out: threading.Event = field(default_factory=threading.Event)
    fanned_out: int = 0
    runs: list[bytes] = field(default_factory=list)
    failures: list[BaseException] = field(default_factory=list)

    def produce(self) -> None:
        with self._connected() as queue:
            while not self.is_over.is_set():
                self.fan_out(queue, self.fanned_out)
                self.fanned_out += 1
        self.is_fanned_out.set()

    def consume(self) -> None:
        with self._connected() as queue:
            while not self.is_fanned_out.is_set() or _holds_items(queue):
                lease = insist(partial(queue.poll, 7, lease=LEASE_SECONDS, wait=0.1))
                for item in lease:
                    self.runs.append(item.contents)
                    insist(partial(lease.complete, {item: item.contents}))

    @contextmanager
    def _connected(self) -> Iterator[queueber.Queue]:
        try:
            with queueber.connect(self.address, connect_timeout=30, retry_timeout=60) as client:
                yield client.queue(STEPS)
        except BaseException as error:  # noqa: BLE001  shown by the test
            self.failures.append(error)


def _holds_items(queue: queueber.Queue) -> bool:
    stats = queue.stats()
    return bool(stats.ready or stats.delayed or stats.leased or stats.callbacks)


def run_under_kills(server: ServerProcess, work: Work) -> None:
    random = Random(5)
    threads = [threading.Thread(target=each) for each in (work.produce, work.consume)]
    for each in threads:
        each.start()
    for kill in range(KILLS):
        time.sleep(random.uniform(0.05, 0.5))
        seen = work.fanned_out
        while kill % 2 and work.fanned_out <= seen and all(each.is_alive() for each in threads):
            time.sleep(0.005)  # so that on a slow machine, too, something happens between two
        server.kill()
        server.start()
    work.is_over.set()
    for each in threads:
        each.join()
    assert work.failures == []
    assert work.fanned_out >= KILLS // 2, "hardly any work"


def verified(server: ServerProcess) -> None:
    assert server.stop() == 0
    command = [sys.executable, "-m", "queueber", "verify", "--data-dir", str(server.data_dir)]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    with RocksStore(server.data_dir, read_only=True) as store:
        assert check_store(store) == []


@contextmanager
def server_with_queues() -> Iterator[ServerProcess]:
    with running_server() as server:
        with queueber.connect(server.address) as client:
            # Items come back as often as servers are killed, and at once.
            client.create_queue(STEPS, attempts_max=0, backoff=[0])
            client.create_queue(REPORTS)
        yield server


CHAIN = {b"first": [], b"second": [b"first"], b"third": [b"first", b"second"], b"last": [b"third"]}
"""The steps of a chain, each with those that it waits for. The last one waits for a batch."""


def add_chain(queue: queueber.Queue, number: int) -> None:
    ids: dict[bytes, bytes] = {}
    for step, after in CHAIN.items():
        text, is_third = step.decode(), step == b"third"
        batch = f"third {number}" if is_third else f"others {number}"
        add = partial(queue.add, b"%d %b" % (number, step), key=f"{number} {text}", batch=batch)
        if step == b"last":
            add = partial(add, after_batch=f"third {number}")
        elif after:
            add = partial(add, after=[ids[each] for each in after])
        (ids[step],) = insist(add)


def test_each_waiter_runs_once_and_after_what_it_waits_for() -> None:
    with server_with_queues() as server:
        work = Work(server.address, add_chain)
        run_under_kills(server, work)
        with queueber.connect(server.address) as client:
            queue = client.queue(STEPS)
            done = [result.result for result in queue.results()]
            stats = queue.stats()
        verified(server)

    expected = [b"%d %b" % (n, step) for n in range(work.fanned_out) for step in CHAIN]
    assert sorted(done) == sorted(expected)
    assert (stats.dead, stats.waiting, stats.delayed) == (0, 0, 0)
    first_run = {each: at for at, each in reversed(list(enumerate(work.runs)))}
    last_run = {each: at for at, each in enumerate(work.runs)}
    finished = {each: at for at, each in enumerate(done)}
    for number in range(work.fanned_out):
        for step, after in CHAIN.items():
            waiter = b"%d %b" % (number, step)
            for each in after:
                awaited = b"%d %b" % (number, each)
                assert last_run[awaited] < first_run[waiter]
                assert finished[awaited] < finished[waiter]


def fan_out_and_ask(queue: queueber.Queue, number: int) -> None:
    batch = f"batch {number}"
    for each in ("x", "y"):
        insist(partial(queue.add, each.encode(), key=f"{number} {each}", batch=batch))
    insist(partial(queue.when_complete, batch, batch.encode(), to=REPORTS))


def test_each_callback_adds_one_item() -> None:
    with server_with_queues() as server:
        work = Work(server.address, fan_out_and_ask)
        run_under_kills(server, work)
        with queueber.connect(server.address) as client:
            items = list(client.queue(REPORTS).peek_all("ready"))
            queue = client.queue(STEPS)
            receipts = {item.contents: queue.receipt(item.contents.decode()) for item in items}
        verified(server)

    batches = [b"batch %d" % number for number in range(work.fanned_out)]
    assert sorted(item.contents for item in items) == sorted(batches)
    for item in items:
        receipt = queueber.callback_receipt(item.attributes)
        assert receipt == receipts[item.contents]
        assert (receipt.added, receipt.done, receipt.dead) == (2, 2, 0)
