"""Worker processes and the server killed at random: every item has one result in the end."""

import multiprocessing
import os
import signal
import time
from random import Random

import pytest

import queueber
from queueber.db.store.rocks import RocksStore
from queueber.engine.integrity.check_store import check_store
from queueber.testing import running_server
from tests.worker import samples
from tests.worker.conftest import results_of, running

ITEMS = 10_000
KILLS_MAX = 10
LEASE_SECONDS = 2.0


def kill_a_worker(random: Random) -> None:
    if processes := multiprocessing.active_children():
        process_id = random.choice(processes).pid
        assert process_id is not None
        os.kill(process_id, signal.SIGKILL)


@pytest.mark.recovery
def test_kills_of_workers_and_server_lose_nothing_and_double_nothing() -> None:
    random = Random(3)
    with running_server() as server:
        with queueber.connect(server.address, retry_timeout=60) as client:
            client.create_queue("killed", attempts_max=1000, backoff=[0])
            queue = client.queue("killed")
            ids: list[bytes] = []
            for start in range(0, ITEMS, 1000):
                ids += queue.add([b"%d" % number for number in range(start, start + 1000)])
            worker = queueber.Worker(
                server.address,
                queue=queue.name,
                handler=samples.double,
                processes=2,
                lease=LEASE_SECONDS,
                progress=False,
            )

            with running(worker):
                for kill in range(KILLS_MAX):
                    time.sleep(random.uniform(0.1, 0.4))
                    if kill == KILLS_MAX // 2:
                        server.kill()
                        server.start()
                    else:
                        kill_a_worker(random)
                while queue.stats().completed_total < ITEMS:
                    time.sleep(0.01)

            assert results_of(queue) == {ids[n]: b"%d" % n * 2 for n in range(ITEMS)}
            assert sum(1 for _ in queue.results()) == ITEMS
        assert server.stop() == 0
        with RocksStore(server.data_dir, read_only=True) as store:
            assert check_store(store) == []
