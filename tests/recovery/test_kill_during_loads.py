"""A server killed with SIGKILL while loads are staged and committed: each is there once, or not."""

import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from random import Random

import pytest

import queueber
from queueber import LoadState, PartRef, Rows
from queueber.db.store.rocks import RocksStore
from queueber.engine.integrity.check_store import check_store
from queueber.ids import origin_of
from queueber.testing import ServerProcess, running_server
from tests.support.loading import stage_part

KILLS = int(os.environ.get("QUEUEBER_TEST_KILLS", "8"))
PARTS, ROWS = 3, 400


@dataclass
class Loads:
    """Loads one after the other, committed or aborted, by somebody who never gives up."""

    address: str
    is_over: threading.Event = field(default_factory=threading.Event)
    committed: set[str] = field(default_factory=set)
    aborted: set[str] = field(default_factory=set)
    failures: list[BaseException] = field(default_factory=list)
    is_committing: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        random = Random(3)
        try:
            with queueber.connect(self.address, connect_timeout=30, retry_timeout=60) as client:
                number = 0
                while not self.is_over.is_set():
                    self._load(client.queue("loaded"), f"load-{number}", random)
                    number += 1
        except BaseException as error:  # noqa: BLE001  shown by the test
            self.failures.append(error)

    def _load(self, queue: queueber.Queue, name: str, random: Random) -> None:
        load = queue.load(name, batch=name)
        refs = []
        for partition in range(PARTS):
            for attempt in ("failed", "good"):
                ref = PartRef(partition, attempt)
                stage_part(load, ref, rows_of(name, partition))
            refs.append(ref)
        if random.random() < 0.2:
            load.abort()
            self.aborted.add(name)
            return
        self.is_committing.set()
        committed = load.commit(refs)
        assert (committed.state, committed.rows) == (LoadState.COMMITTED, PARTS * ROWS)
        self.committed.add(name)


def rows_of(name: str, partition: int) -> Rows:
    numbers = range(ROWS)
    return Rows(
        [f"{name}/{partition}/{n}".encode() for n in numbers],
        keys=[f"{name}/{partition}/{n}" if n % 2 else "" for n in numbers],
        priorities=[n % 10 for n in numbers],
        visible_at_ms=[0 if n % 4 else 1 << 42 for n in numbers],
    )


def expected(name: str) -> set[tuple[bytes, tuple[int, int]]]:
    return {
        (contents, (partition, row))
        for partition in range(PARTS)
        for row, contents in enumerate(rows_of(name, partition).contents)
    }


def verify(server: ServerProcess) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "queueber", "verify", "--data-dir", str(server.data_dir)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def found_in(queue: queueber.Queue) -> list[tuple[bytes, tuple[int, int] | None, str]]:
    return [
        (each.contents, origin_of(each.id), each.batch)
        for state in ("ready", "delayed")
        for each in queue.peek_all(state)
    ]


@pytest.mark.recovery
@pytest.mark.timeout(60 + 10 * KILLS)
def test_a_killed_server_has_each_committed_load_once_and_nothing_of_others() -> None:
    random = Random(4)
    with running_server() as server:
        loads = Loads(server.address)
        working = threading.Thread(target=loads.run)
        working.start()
        for kill in range(KILLS):
            time.sleep(random.uniform(0.05, 0.4))
            if kill % 2:
                # Half of them in the middle of the next commit, so that on a slow machine, too,
                # there is one.
                loads.is_committing.clear()
                assert loads.is_committing.wait(60)
                time.sleep(random.uniform(0, 0.03))
            server.kill()
            server.start()
        loads.is_over.set()
        working.join()
        with queueber.connect(server.address) as client:
            queue = client.queue("loaded")
            found = found_in(queue)
            receipts = {name: queue.receipt(name) for name in loads.committed}
            left = queue.loads()
        assert server.stop() == 0
        checked = verify(server)
        with RocksStore(server.data_dir, read_only=True) as store:
            assert check_store(store) == []
        stage = sorted(path.name for path in (server.data_dir / "loads").iterdir())

    assert loads.failures == []
    assert (checked.returncode, left, stage) == (0, [], [])
    assert len(loads.committed) >= KILLS // 4, "hardly any load"
    assert len(found) == len(loads.committed) * PARTS * ROWS
    for name in loads.committed:
        assert {(c, o) for c, o, batch in found if batch == name} == expected(name)
        assert receipts[name].added == PARTS * ROWS


@pytest.mark.recovery
def test_commit_that_a_crash_cut_off_is_finished_by_the_next_start_alone() -> None:
    """Nobody asks again: the intent is enough."""
    finished = 0
    with running_server() as server:
        for number in range(KILLS):
            name = f"load-{number}"
            with queueber.connect(server.address) as client:
                queue = client.queue(name)
                load = queue.load(name)
                for partition in range(PARTS):
                    stage_part(load, PartRef(partition, "a"), rows_of(name, partition))
                refs = [PartRef(partition, "a") for partition in range(PARTS)]
                future = load._calls.commit(load.ref, refs)
                while not future.done() and (loads := queue.loads()):
                    if loads[0].state is LoadState.COMMITTING:
                        break
                time.sleep(0.002 * (number % 4))
                server.kill()
            server.start()
            with queueber.connect(server.address) as client:
                queue = client.queue(name)
                stats = queue.stats()
                there = stats.ready + stats.delayed
                assert there in (0, PARTS * ROWS)
                finished += there > 0
                assert queue.load(name).is_committed == (there > 0)
        assert server.stop() == 0
        assert verify(server).returncode == 0

    assert finished > 0
