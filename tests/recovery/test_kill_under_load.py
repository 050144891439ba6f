"""A server killed with SIGKILL under load, again and again: what was acknowledged stays true."""

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

import pytest

import queueber
from queueber.db.store import Store
from queueber.engine.invariants import check_store
from queueber.testing import ServerProcess, running_server

KILLS = int(os.environ.get("QUEUEBER_TEST_KILLS", "20"))
LEASE_SECONDS = 1.0


@dataclass
class History:
    """What clients were told, and when. `unsure` are calls that were lost on the way."""

    added: set[bytes] = field(default_factory=set)
    removed_at: dict[bytes, float] = field(default_factory=dict)
    unsure_removes: set[bytes] = field(default_factory=set)
    unsure_adds: int = 0
    revived: set[bytes] = field(default_factory=set)
    failures: list[BaseException] = field(default_factory=list)

    def saw_polled(self, ids: list[bytes], asked_at: float) -> None:
        """An item whose removal was acknowledged before the poll was sent must not be in it."""
        self.revived |= {i for i in ids if self.removed_at.get(i, asked_at) < asked_at}


class Load:
    """Producers and consumers that go on through every crash until told to stop."""

    def __init__(self, address: str, history: History) -> None:
        self._address = address
        self._history = history
        self._is_over = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(work, seed))
            for seed, work in enumerate([self._produce] * 3 + [self._consume] * 3)
        ]

    def __enter__(self) -> None:
        for thread in self._threads:
            thread.start()

    def __exit__(self, *exc_info: object) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def _run(self, work: Callable[[queueber.Queue, Random], None], seed: int) -> None:
        try:
            random = Random(seed)
            with queueber.connect(self._address, connect_timeout=30) as client:
                while not self._is_over.is_set():
                    work(client.queue("load"), random)
        except BaseException as error:  # noqa: BLE001  shown by the test
            self._history.failures.append(error)

    def _produce(self, queue: queueber.Queue, random: Random) -> None:
        contents = [random.randbytes(random.randrange(200)) for _ in range(random.randrange(1, 30))]
        try:
            self._history.added |= set(queue.add(contents))
        except queueber.OutcomeUnknown:
            self._history.unsure_adds += len(contents)

    def _consume(self, queue: queueber.Queue, random: Random) -> None:
        asked_at = time.monotonic()
        lease = queue.poll(random.randrange(1, 30), lease=LEASE_SECONDS, wait=0.5)
        self._history.saw_polled(lease.ids, asked_at)
        done = lease.ids[: random.randrange(len(lease) + 1)]
        try:
            outcome = lease.remove(done) if done else []
        except queueber.OutcomeUnknown:
            self._history.unsure_removes |= set(done)
            return
        now = time.monotonic()
        for item_id, is_removed in zip(done, outcome, strict=True):
            if is_removed:
                self._history.removed_at[item_id] = now


def drain(server: ServerProcess, history: History) -> set[bytes]:
    """Everything that is still there, once the leases of the dead have run out."""
    left: set[bytes] = set()
    with queueber.connect(server.address) as client:
        queue = client.queue("load")
        while True:
            asked_at = time.monotonic()
            lease = queue.poll(1000, lease=60, wait=2 * LEASE_SECONDS)
            if not lease:
                return left
            history.saw_polled(lease.ids, asked_at)
            left |= set(lease.ids)


@pytest.mark.recovery
@pytest.mark.timeout(60 + 10 * KILLS)
def test_a_killed_server_loses_no_acknowledged_add_and_revives_no_acknowledged_remove() -> None:
    history, random = History(), Random(2)

    with running_server() as server:
        with Load(server.address, history):
            for _ in range(KILLS):
                time.sleep(random.uniform(0.05, 0.4))
                server.kill()
                server.start()
        left = drain(server, history)
        assert server.stop() == 0
        with Store(server.data_dir, read_only=True) as store:
            violations = check_store(store)

    assert history.failures == []
    assert violations == []
    assert len(history.added) > 100 * KILLS, "hardly any load"
    assert len(history.removed_at) > 10 * KILLS, "hardly any load"
    lost = history.added - left - set(history.removed_at) - history.unsure_removes
    assert lost == set()
    assert history.revived == set()
    assert left & set(history.removed_at) == set()
    unexpected = left - history.added
    assert len(unexpected) <= history.unsure_adds
