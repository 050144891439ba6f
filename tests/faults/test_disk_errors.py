"""The disk fails under a running server: nothing is acknowledged in vain, and it says why.

With a real server in a process of its own, and calls to the operating system that really fail.
"""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import queueber
from faults.checker import check
from faults.disk.failing_calls import limit_file_size, why_not
from faults.observed import ObservedQueue, read_final_state
from faults.recorder import Recorder
from queueber.db.store.rocks import RocksStore
from queueber.engine.integrity.check_store import check_store
from queueber.testing import ServerProcess, running_server

pytestmark = [
    pytest.mark.recovery,
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]


@contextmanager
def failing_server(call: str, data_dir: Path, *options: str) -> Iterator[ServerProcess]:
    """A server whose `call` fails once it gets SIGUSR1."""
    server = ServerProcess(
        data_dir, options, command=(sys.executable, "-m", "faults.disk.failing_calls", call)
    )
    server.start()
    try:
        yield server
    finally:
        if server.process is not None and server.process.poll() is None:
            server.kill()


def begin_to_fail(server: ServerProcess) -> None:
    assert server.process is not None
    server.process.send_signal(signal.SIGUSR1)
    time.sleep(0.3)


def ended(server: ServerProcess) -> tuple[int, str]:
    assert server.process is not None
    code = server.process.wait(30)
    return code, server.log_file.read_text()


def check_after_restart(data_dir: Path, recorder: Recorder) -> list[bytes]:
    """Hold what all were told against what is there, of which the contents are returned."""
    with recorder.call("test", "restart", queue=""), running_server(data_dir=data_dir) as server:
        with queueber.connect(server.address) as client:
            final = read_final_state(client.queue())
            found = [item.contents for item in client.queue().poll(1000)]
        assert server.stop() == 0
    with RocksStore(data_dir, read_only=True) as store:
        assert check_store(store) == []
    assert check(recorder.history, {"default": final}) == []
    return found


def observed(client: queueber.Client, recorder: Recorder) -> ObservedQueue:
    return ObservedQueue(client.queue(), recorder, "client")


@pytest.mark.parametrize("durability", ["sync", "os"])
def test_server_whose_sync_fails_acknowledges_nothing_more_says_why_and_ends(
    tmp_path: Path, durability: str
) -> None:
    data_dir, recorder = tmp_path / "data", Recorder()
    with failing_server("fdatasync", data_dir, "--durability", durability) as server:
        with queueber.connect(server.address, retry_timeout=0) as client:
            queue = observed(client, recorder)
            for number in range(20):
                queue.add([b"%d" % number])
            begin_to_fail(server)
            if durability == "sync":
                with pytest.raises(queueber.QueueberError, match="could not be synced"):
                    queue.add([b"not acknowledged"])
        code, log = ended(server)

    assert code == 5
    assert "Input/output error" in log
    last = json.loads(log.splitlines()[-1])
    assert last["event"] == "server_failed"
    assert last["reason"].endswith("all that was acknowledged is there")
    found = check_after_restart(data_dir, recorder)
    assert found[:20] == [b"%d" % number for number in range(20)]
    assert found[20:] in ([], [b"not acknowledged"])


def test_server_whose_log_cannot_be_written_acknowledges_nothing_more_says_why_and_ends(
    tmp_path: Path,
) -> None:
    data_dir, recorder = tmp_path / "data", Recorder()
    with failing_server("write", data_dir) as server:
        with queueber.connect(server.address, retry_timeout=0) as client:
            queue = observed(client, recorder)
            for number in range(20):
                queue.add([b"%d" % number])
            begin_to_fail(server)
            with pytest.raises(queueber.QueueberError, match="cannot be written"):
                queue.add([b"not acknowledged"])
        code, log = ended(server)

    assert code == 5
    assert "Input/output error" in log
    found = check_after_restart(data_dir, recorder)
    assert found[:20] == [b"%d" % number for number in range(20)]


def test_files_that_may_not_grow_stop_the_server_and_the_next_start_has_all(
    tmp_path: Path,
) -> None:
    """As a quota does, or a limit of the file system."""
    data_dir, recorder = tmp_path / "data", Recorder()
    with running_server(data_dir=data_dir) as server:
        assert server.process is not None
        added: list[bytes] = []
        with queueber.connect(server.address, retry_timeout=0) as client:
            limit_file_size(server.process.pid, 300_000)
            refusal = ""
            while not refusal and len(added) < 100:
                try:
                    added += observed(client, recorder).add([bytes(10_000)])
                except queueber.QueueberError as error:
                    refusal = str(error)
            assert "File too large" in refusal
        code, log = ended(server)
        assert code == 5
        assert "File too large" in log

    assert 10 < len(added) < 100
    assert len(check_after_restart(data_dir, recorder)) in (len(added), len(added) + 1)


def test_torn_log_is_told_in_the_servers_log(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    with running_server(data_dir=data_dir) as server:
        with queueber.connect(server.address) as client:
            client.queue().add(b"kept")
        server.kill()
        (log,) = data_dir.glob("*.log")
        with log.open("ab") as file:
            file.write(b"half a record of which nobody was told")

        server.start()

        with queueber.connect(server.address) as client:
            assert [item.contents for item in client.queue().poll(5)] == [b"kept"]
        assert '"event": "torn_log"' in server.log_file.read_text()


def test_damaged_block_stops_the_server_with_a_sentence(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    with running_server(data_dir=data_dir) as server:
        with queueber.connect(server.address) as client:
            client.queue().add([bytes([n % 251]) * 50 + n.to_bytes(500) for n in range(300)])
        server.stop()
        largest = max(data_dir.glob("*.sst"), key=lambda file: file.stat().st_size)
        held = bytearray(largest.read_bytes())
        held[len(held) // 3] ^= 1
        largest.write_bytes(held)
        server.start()

        with (
            queueber.connect(server.address, retry_timeout=0) as client,
            pytest.raises(queueber.QueueberError, match="'queueber repair' saves what can be read"),
        ):
            client.queue().poll(300)

        code, log = ended(server)
    assert code == 5
    assert "the store cannot be read (Corruption: " in log
    verified = subprocess.run(
        [sys.executable, "-m", "queueber", "verify", "--data-dir", str(data_dir)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (verified.returncode, largest.name in verified.stdout) == (1, True)
