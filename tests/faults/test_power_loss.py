"""Loss of power: everything that was synced is there, and nothing behind what is missing."""

import contextlib
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

import queueber
from faults.power import last_log, run_once
from queueber.db.recovery.wal import read_synced
from queueber.db.store.rocks import RocksStore
from queueber.engine.integrity.check_store import check_store
from queueber.testing import running_server
from tests.support.folders import quick_folder, remove_folder

LOSSES = 20
LOSSES_LONG = int(os.environ.get("QUEUEBER_TEST_POWER_LOSSES", "1000"))


@pytest.mark.parametrize("seed", range(LOSSES))
def test_loss_of_power_loses_nothing_that_was_synced(seed: int) -> None:
    folder = quick_folder()
    try:
        assert run_once(seed, folder).failure == ""
    finally:
        remove_folder(folder)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_many_losses_of_power_lose_nothing_that_was_synced() -> None:
    folder = quick_folder()
    outcomes = [run_once(seed, folder) for seed in range(10_000, 10_000 + LOSSES_LONG)]
    remove_folder(folder)

    assert [outcome for outcome in outcomes if outcome.failure] == []
    assert sum(outcome.written - outcome.found for outcome in outcomes) > LOSSES_LONG


@pytest.mark.recovery
@pytest.mark.parametrize("durability", ["sync", "os"])
def test_server_that_lost_power_has_what_its_mode_promises(tmp_path: Path, durability: str) -> None:
    """`sync`: what was acknowledged. `os`: what was acknowledged two seconds ago."""
    random = Random(3)
    with running_server("--durability", durability, data_dir=tmp_path / "data") as server:
        with queueber.connect(server.address) as client:
            for _ in range(2):
                queue = client.queue()
                safe = {queue.add(random.randbytes(300))[0] for _ in range(20)}
                if durability == "os":
                    time.sleep(2.1)
                    assert read_synced(server.data_dir) > 0
                log = last_log(server.data_dir)
                synced_bytes = log.stat().st_size
                lose_power_while_adding(server.address, server.kill)
                held = log.read_bytes()
                log.write_bytes(held[: random.randint(synced_bytes, len(held))])
                server.start()

                left = queue.poll(1000)
                assert safe <= set(left.ids)
                assert all(left.remove())
        assert server.stop() == 0
        with RocksStore(server.data_dir, read_only=True) as store:
            assert check_store(store) == []


def lose_power_while_adding(address: str, kill: Callable[[], None]) -> None:
    """Kill the server in the middle of adds of which nobody waits for the end."""

    def add() -> None:
        with (
            contextlib.suppress(queueber.QueueberError),
            queueber.connect(address, retry_timeout=0) as client,
        ):
            while True:
                client.queue().add([bytes(2000)] * 5)

    threads = [threading.Thread(target=add) for _ in range(2)]
    for thread in threads:
        thread.start()
    time.sleep(0.2)
    kill()
    for thread in threads:
        thread.join()
