"""The fixtures of pytest, as a program has them that installed Queueber: in a pytest of its own."""

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

CONFTEST = """
import sys

def pytest_configure(config):
    loaded = {name.partition(".")[0] for name in sys.modules}
    print("loaded at the start:", sorted(loaded & {"queueber", "capnp", "structlog"}))
"""

TESTS = """
import queueber
from queueber.testing import ServerProcess

PROCESSES = []
NOTHING = ([("default", 0)], [], [])

def noted(server):
    PROCESSES.append(server.process.pid)
    with queueber.connect(server.address) as client:
        queues = [(queue.name, queue.ready) for queue in client.queues()]
        return queues, list(client.topics()), client.schedules()

def test_a_client_is_connected_to_the_server(queueber_client, queueber_server):
    assert noted(queueber_server) == NOTHING
    queueber_client.queue("orders").add([b"17", b"18"], batch="monday")
    queueber_client.topic("events").publish(b"a")
    queueber_client.schedule("nightly", "0 3 * * *", queue="orders", contents=b"go")
    assert queueber_client.queue("orders").stats().ready == 2

def test_the_next_test_finds_nothing_in_the_same_process(queueber_server):
    assert noted(queueber_server) == NOTHING
    assert len(set(PROCESSES)) == 1

def test_the_clock_can_be_moved(queueber_server, queueber_client):
    assert noted(queueber_server) == NOTHING
    queue = queueber_client.queue("later")
    queue.add(b"tomorrow", delay=86_400)
    queueber_server.advance(days=1)
    assert [item.contents for item in queue.poll(1)] == [b"tomorrow"]
    assert len(set(PROCESSES)) == 1

LEFT = []

def test_after_a_move_there_is_another_process(queueber_server):
    assert noted(queueber_server) == NOTHING
    assert len(set(PROCESSES)) == 2
    assert queueber_server.advanced_ms == 0
    LEFT.append(queueber.connect(queueber_server.address))

def test_a_test_that_leaves_a_client_cannot_disturb(queueber_server):
    assert noted(queueber_server) == NOTHING
    assert len(set(PROCESSES)) == 3
    LEFT.pop().close()
    queueber_server.kill()

def test_after_a_crash_there_is_another_process(queueber_server):
    assert isinstance(queueber_server, ServerProcess)
    assert noted(queueber_server) == NOTHING
    assert len(set(PROCESSES)) == 4

def double(item):
    return item.contents * 2

def test_a_worker_works(queueber_server, queueber_client):
    queueber_client.queue("work").add(b"a")
    worker = queueber.Worker(queueber_server.address, queue="work", handler=double)
    assert worker.run(until="empty").done == 1
    assert noted(queueber_server) and len(set(PROCESSES)) == 4
    queueber_client.queue().add(b"in the queue that cannot be deleted")

def test_what_the_default_queue_remembers_is_gone(queueber_server):
    assert noted(queueber_server) == NOTHING
    assert len(set(PROCESSES)) == 5
"""


def run_pytest(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-s", "-v", *arguments],
        cwd=folder, capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip


def test_pytest_finds_the_fixtures_by_itself() -> None:
    # `make setup` installs it; it is not there in an environment that was made before.
    assert [each.value for each in entry_points(group="pytest11") if each.name == "queueber"] == [
        "queueber_pytest"
    ]


def test_a_program_tests_itself_with_the_fixtures(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_program.py").write_text(TESTS)

    ended = run_pytest(tmp_path)

    assert ended.returncode == 0, ended.stdout
    assert "8 passed" in ended.stdout
    assert "loaded at the start: []" in ended.stdout


def test_a_program_gives_options_to_its_servers(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        "import pytest\n\n@pytest.fixture(scope='session')\n"
        "def queueber_server_options():\n    return ('--poll-items-max', '3')\n"
    )
    (tmp_path / "test_program.py").write_text(
        "def test_options(queueber_client):\n"
        "    assert queueber_client.server().poll_items_max == 3\n"
    )

    ended = run_pytest(tmp_path)

    assert ended.returncode == 0, ended.stdout


def test_servers_end_with_pytest(tmp_path: Path) -> None:
    (tmp_path / "test_program.py").write_text(
        "def test_pid(queueber_server):\n    print('pid:', queueber_server.process.pid)\n"
    )

    ended = run_pytest(tmp_path)

    pid = int(ended.stdout.partition("pid: ")[2].split()[0])
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
