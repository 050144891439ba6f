"""A script that starts worker processes without a main guard gets one clear error, at once."""

import subprocess
import sys
import time
from pathlib import Path

import queueber
from queueber.testing import ServerProcess

SCRIPT = """
import queueber

def handle(item):
    return item.contents

worker = queueber.Worker("{address}", queue="{queue}", handler=handle, processes=2)
{start}worker.run(until="empty")
"""

SECONDS_MAX = 20.0
"""Of a few starts of Python, on a busy machine. Twenty restarts took longer."""


def run_script(folder: Path, start: str, server: ServerProcess, queue: queueber.Queue) -> str:
    script = folder / "script.py"
    script.write_text(SCRIPT.format(start=start, address=server.address, queue=queue.name))
    began = time.monotonic()
    ended = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=False
    )
    assert time.monotonic() - began < SECONDS_MAX
    assert (ended.returncode != 0) == (not start), ended.stderr
    return ended.stderr


def test_a_missing_main_guard_is_one_error(
    tmp_path: Path, server: ServerProcess, queue: queueber.Queue
) -> None:
    queue.add(b"x")

    stderr = run_script(tmp_path, "", server, queue)

    assert stderr.count("Traceback") == 1
    assert """put the start under 'if __name__ == "__main__":'""" in stderr.splitlines()[-1]
    assert "worker_process_died" not in stderr
    assert len(stderr.splitlines()) < 30
    assert queue.stats().ready == 1


def test_a_handler_of_an_interactive_session_is_one_error(
    server: ServerProcess, queue: queueber.Queue
) -> None:
    code = SCRIPT.format(start="", address=server.address, queue=queue.name)

    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )

    last = ended.stderr.splitlines()[-1]
    assert "cannot be sent to a process (it is defined in no file); define it at the top of" in last
    assert ended.stderr.count("Traceback") == 1


def test_a_script_with_a_main_guard_runs(
    tmp_path: Path, server: ServerProcess, queue: queueber.Queue
) -> None:
    queue.add(b"x")

    run_script(tmp_path, 'if __name__ == "__main__":\n    ', server, queue)

    assert queue.stats().completed_total == 1
