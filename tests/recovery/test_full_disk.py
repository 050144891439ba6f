"""A full disk: no false acknowledgement, clear refusals, reads go on, and it recovers by itself."""

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import queueber
from queueber.db.store import Store
from queueber.engine.invariants import check_store
from queueber.testing import running_server

ITEM = bytes(500_000)


@contextlib.contextmanager
def small_disk(folder: Path, size: str) -> Iterator[None]:
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting a file system of limited size is not allowed here")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def try_to_add(queue: queueber.Queue) -> list[bytes]:
    try:
        return queue.add(ITEM)
    except queueber.Unavailable:
        return []


@pytest.mark.recovery
@pytest.mark.timeout(120)
def test_a_full_disk_refuses_adds_keeps_what_was_acknowledged_and_recovers(tmp_path: Path) -> None:
    with small_disk(tmp_path, "64m"):
        with running_server(data_dir=tmp_path / "data") as server:
            added: list[bytes] = []
            with queueber.connect(server.address, retry_timeout=0) as client:
                queue = client.queue("full")
                while (outcome := try_to_add(queue)) and len(added) < 1000:
                    added += outcome
                assert 20 < len(added) < 1000
                with pytest.raises(queueber.Unavailable, match="data directory is full"):
                    queue.add(ITEM)
                assert queue.stats().ready == len(added)

            subprocess.run(["mount", "-o", "remount,size=1g", str(tmp_path)], check=True)
            with queueber.connect(server.address, retry_timeout=60) as client:
                queue = client.queue("full")
                added += queue.add(b"there is room")
                polled: list[bytes] = []
                while lease := queue.poll(50):
                    polled += lease.ids
                    assert all(lease.remove())
            assert server.stop() == 0
        with Store(tmp_path / "data", read_only=True) as store:
            assert check_store(store) == []

    assert polled == added
