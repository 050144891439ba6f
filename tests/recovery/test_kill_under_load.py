"""A server killed with SIGKILL under load, again and again: what was acknowledged stays true."""

import os
import threading
import time
from collections.abc import Callable
from random import Random

import pytest

import queueber
from faults.checker import check
from faults.history import Call, merged
from faults.observed import ObservedQueue, read_final_state
from faults.recorder import Recorder
from queueber.db.store import Store
from queueber.engine.invariants import check_store
from queueber.testing import running_server

KILLS = int(os.environ.get("QUEUEBER_TEST_KILLS", "20"))
LEASE_SECONDS = 1.0
BATCHES = ("one", "two")
QUEUE = "load"


class Load:
    """Producers and consumers that go on through every crash until told to stop."""

    def __init__(self, address: str, recorder: Recorder) -> None:
        self._address = address
        self._recorder = recorder
        self._is_over = threading.Event()
        self.failures: list[BaseException] = []
        self._threads = [
            threading.Thread(target=self._run, args=(work, f"{work.__name__} {seed}", seed))
            for seed, work in enumerate([produce] * 3 + [consume] * 3)
        ]

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def _run(self, work: Callable[[ObservedQueue, Random], None], name: str, seed: int) -> None:
        try:
            random = Random(seed)
            with queueber.connect(self._address, connect_timeout=30) as client:
                queue = ObservedQueue(client.queue(QUEUE), self._recorder, name)
                while not self._is_over.is_set():
                    try:
                        work(queue, random)
                    except (queueber.OutcomeUnknown, queueber.Unavailable):
                        # On a busy machine the server is up for less time than it takes to find it.
                        continue
        except BaseException as error:  # noqa: BLE001  shown by the test
            self.failures.append(error)


def produce(queue: ObservedQueue, random: Random) -> None:
    contents = [random.randbytes(random.randrange(8, 200)) for _ in range(random.randrange(1, 30))]
    queue.add(contents, batch=random.choice(["", *BATCHES]))


def consume(queue: ObservedQueue, random: Random) -> None:
    lease = queue.poll(random.randrange(1, 30), lease=LEASE_SECONDS, wait=0.5)
    some = lease.ids[: random.randrange(len(lease) + 1)]
    if not some:
        return
    match random.randrange(8):
        case 0:
            queue.fail(some, lease.id, delay=0.1)
        case 1:
            queue.release(some, lease.id)
        case 2:
            queue.extend(lease.id, LEASE_SECONDS)
        case 3:
            queue.receipt(random.choice(BATCHES))
        case 4 | 5:
            queue.complete({item_id: b"done " + item_id[-4:] for item_id in some}, lease.id)
        case _:
            queue.remove(some, lease.id)


def wait_until_nothing_moves(queue: queueber.Queue) -> None:
    """Until the leases of the dead have run out."""
    deadline = time.monotonic() + 30
    while (stats := queue.stats()).in_progress or stats.delayed:
        assert time.monotonic() < deadline, "leases do not run out"
        time.sleep(0.1)


def acknowledged(calls: list[Call], *operations: str) -> int:
    return sum(
        len(call.answer.get("ids", call.answer.get("done", ())))
        for call in calls
        if call.operation in operations and call.is_ok
    )


@pytest.mark.recovery
@pytest.mark.timeout(60 + 10 * KILLS)
def test_a_killed_server_keeps_all_that_it_acknowledged() -> None:
    recorder, random = Recorder(), Random(2)

    with running_server() as server:
        with Load(server.address, recorder) as load:
            for _ in range(KILLS):
                time.sleep(random.uniform(0.05, 0.4))
                with recorder.call("test", "restart", queue=""):
                    server.kill()
                    server.start()
        with queueber.connect(server.address) as client:
            queue = client.queue(QUEUE)
            wait_until_nothing_moves(queue)
            final = read_final_state(queue, BATCHES)
        assert server.stop() == 0
        with Store(server.data_dir, read_only=True) as store:
            violations = check_store(store)

    assert load.failures == []
    assert violations == []
    calls = recorder.history.calls
    assert acknowledged(calls, "add") > 100 * KILLS, "hardly any load"
    assert acknowledged(calls, "remove", "complete") > 10 * KILLS, "hardly any load"
    assert [str(each) for each in check(merged([recorder.history]), {QUEUE: final})] == []
