"""Workers die, by chance and because an item kills them: every item ends as it should, once.

One item in 200 kills its worker every time. The others are done exactly once, the culprits end as
dead letters, and the receipt proves the sum.
"""

import itertools
import multiprocessing
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path
from random import Random

import pytest

import queueber
from faults.checker import check
from faults.history import merged
from faults.observed import ObservedQueue, read_final_state
from faults.observed_pool import run_observed_pool
from faults.recorder import Recorder, read_histories, recording_to
from queueber.db.store.rocks import RocksStore
from queueber.engine.integrity.check_store import check_store
from queueber.testing import running_server

ITEMS = int(os.environ.get("QUEUEBER_TEST_POISON_ITEMS", "1000"))
POISON_EVERY = 200
ATTEMPTS_MAX = 4
WORKERS = 2
LEASE_SECONDS = 60.0
"""No lease runs out: each ends with its items, or with its worker."""
LOOK_SECONDS = 0.2
CHANCE_OF_A_KILL = 0.15
KILLS_BY_CHANCE_MAX = 10
QUEUE, BATCH = "tasks", "fan-out"


def work(address: str, file: Path) -> None:
    with recording_to(file) as recorder:

        def handle(item: queueber.WorkItem) -> bytes:
            if item.contents.startswith(b"poison"):
                recorder.begin(file.stem, "hang_up", "", {})
                os.kill(os.getpid(), signal.SIGKILL)
            return item.contents.upper()

        run_observed_pool(recorder, file.stem, address, QUEUE, handle, lease=LEASE_SECONDS)


class Workers:
    """Processes that are started again whenever one has died."""

    def __init__(self, address: str, histories: Path, recorder: Recorder) -> None:
        self._address = address
        self._histories = histories
        self._recorder = recorder
        self._numbers = itertools.count()
        self._processes = [self._start() for _ in range(WORKERS)]
        self.deaths = 0

    def _start(self) -> BaseProcess:
        file = self._histories / f"worker-{next(self._numbers)}.jsonl"
        process = multiprocessing.get_context("spawn").Process(
            name=file.stem, target=work, args=(self._address, file), daemon=True
        )
        process.start()
        return process

    def kill_one(self, random: Random) -> None:
        self._kill(random.choice(self._processes))

    def replace_the_dead(self) -> None:
        for at, process in enumerate(self._processes):
            if not process.is_alive():
                self.deaths += 1
                process.join()
                self._processes[at] = self._start()

    def stop(self) -> None:
        for process in self._processes:
            self._kill(process)

    def _kill(self, process: BaseProcess) -> None:
        with self._recorder.call(process.name, "hang_up", queue=""):
            process.kill()
            process.join()


@contextmanager
def workers(address: str, histories: Path, recorder: Recorder) -> Iterator[Workers]:
    pool = Workers(address, histories, recorder)
    try:
        yield pool
    finally:
        pool.stop()


def add_tasks(queue: ObservedQueue) -> tuple[dict[bytes, bytes], set[bytes]]:
    """The contents of the good ones by id, and the ids of those that kill."""
    contents = [
        b"poison %d" % number if number % POISON_EVERY == 7 else b"task %d" % number
        for number in range(ITEMS)
    ]
    ids = queue.add(contents, batch=BATCH)
    by_id = dict(zip(ids, contents, strict=True))
    poison = {i for i, each in by_id.items() if each.startswith(b"poison")}
    return {i: each for i, each in by_id.items() if i not in poison}, poison


@pytest.mark.recovery
@pytest.mark.slow
def test_good_items_are_done_once_and_those_that_kill_their_workers_end_dead(
    tmp_path: Path,
) -> None:
    random, recorder = Random(11), Recorder()
    kills = 0
    with running_server() as server:
        with (
            queueber.connect(server.address) as client,
            workers(server.address, tmp_path, recorder) as pool,
        ):
            client.create_queue(QUEUE, attempts_max=ATTEMPTS_MAX)
            queue = client.queue(QUEUE)
            good, poison = add_tasks(ObservedQueue(queue, recorder, "producer"))

            while not (receipt := queue.wait_for_batch(BATCH, timeout=LOOK_SECONDS)).complete:
                if kills < KILLS_BY_CHANCE_MAX and random.random() < CHANCE_OF_A_KILL:
                    pool.kill_one(random)
                    kills += 1
                pool.replace_the_dead()

            results = list(queue.results())
            dead = list(queue.peek_all("dead"))
            stats = queue.stats()
            final = read_final_state(queue, [BATCH])
        server.stop()
        with RocksStore(server.data_dir, read_only=True) as store:
            assert check_store(store) == []

    history = merged([read_histories(tmp_path), recorder.history])
    assert check(history, {QUEUE: final}) == []
    assert (receipt.added, receipt.done, receipt.dead, receipt.live) == (
        ITEMS,
        len(good),
        len(poison),
        0,
    )
    assert len(results) == len(good)
    assert {each.id: each.result for each in results} == {
        item_id: contents.upper() for item_id, contents in good.items()
    }
    assert {each.id for each in dead} == poison
    assert all(len(each.attempt_times_ms) == ATTEMPTS_MAX for each in dead)
    assert (stats.ready, stats.delayed, stats.leased) == (0, 0, 0)
    assert pool.deaths >= len(poison) * ATTEMPTS_MAX
