"""`queueber work`, mostly as a process of its own: it is all about signals and exit codes."""

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import queueber
from tests.cli.conftest import Cli

WAIT_SECONDS = 30.0

MODULE = """
import pathlib, time

def double(item):
    return item.contents * 2

def length(item):
    return {"length": len(item.contents)}

async def soon(item):
    import sniffio
    return sniffio.current_async_library().encode()

def hang(item):
    pathlib.Path("began-" + item.id.hex()).touch()
    while not pathlib.Path("go").exists():
        time.sleep(0.01)

def die(item):
    import os
    os._exit(3)

async def block(item):
    time.sleep(3600)

number = 3
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with a module of handlers in it that no other test has."""
    name = f"handlers_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def module(folder: Path) -> str:
    (file,) = folder.glob("handlers_*.py")
    return file.stem


@pytest.fixture
def outside(cli: Cli) -> Cli:
    """The command in other directories than that of the sources."""
    root = str(Path(queueber.__file__).parent.parent)
    path = f"{root}:{os.environ.get('PYTHONPATH', '')}"
    return Cli(cli.address, {**cli.environment, "PYTHONPATH": path})


def wait_until_begun(folder: Path, count: int) -> None:
    give_up_at = time.monotonic() + WAIT_SECONDS
    while len(list(folder.glob("began-*"))) < count:
        assert time.monotonic() < give_up_at
        time.sleep(0.01)


def test_work_runs_a_function_of_the_current_directory(
    cli: Cli, queue: queueber.Queue, module: str
) -> None:
    ids = queue.add([b"a", b"b"])

    outcome = cli("work", f"{module}:double", "-q", queue.name, "--until", "empty", "--json")

    assert outcome.code == 0
    assert {result.id: result.result for result in queue.results()} == dict(
        zip(ids, [b"aa", b"bb"], strict=True)
    )
    assert json.loads(outcome.stdout)["done"] == 2


@pytest.mark.parametrize("loop", ["asyncio", "trio"])
def test_work_runs_coroutines(cli: Cli, queue: queueber.Queue, module: str, loop: str) -> None:
    queue.add(b"x")

    arguments = [f"{module}:soon", "-q", queue.name, "--loop", loop, "--until", "empty"]
    assert cli("work", *arguments).code == 0

    assert [result.result for result in queue.results()] == [loop.encode()]


def test_work_with_processes_and_a_serializer(
    outside: Cli, queue: queueber.Queue, module: str
) -> None:
    queue.add([b"x"] * 10)

    outcome = outside.run(
        "work", f"{module}:length", "-q", queue.name, "--processes", "2", "--concurrency", "2",
        "--serializer", "json", "--until", "empty", "--json",
    )  # fmt: skip

    assert outcome.code == 0, outcome.stderr
    assert json.loads(outcome.stdout)["done"] == 10
    assert {result.result for result in queue.results()} == {b'{"length": 1}'}
    last = json.loads(outcome.stderr.splitlines()[-1])
    assert (last["event"], last["done"], last["failed"]) == ("worker_ended", 10, 0)


APP = """
import queueber
app = queueber.App("127.0.0.1:1")

@app.job("double", queue="NAME-a", timeout=5)
def double(number: int) -> int:
    return 2 * number

@app.job("triple", queue="NAME-b")
async def triple(number: int) -> int:
    return 3 * number
"""


@pytest.mark.parametrize(
    ("flags", "done"),
    [
        ([], 2),
        (["--queues", "NAME-a=3,NAME-b"], 2),
        (["--queue", "NAME-b"], 1),
        (["--processes", "2"], 2),
    ],
)
def test_work_serves_the_jobs_of_an_app(
    cli: Cli, outside: Cli, queue: queueber.Queue, folder: Path, flags: list[str], done: int
) -> None:
    """The server is that of --address, or of the environment, before that of the app."""
    name = f"app_{folder.name.replace('-', '_')}"
    (folder / f"{name}.py").write_text(APP.replace("NAME", queue.name))
    with queueber.connect(cli.address) as client:
        for letter, job in ("a", b"double"), ("b", b"triple"):
            client.queue(f"{queue.name}-{letter}").add(b'{"job":"%s","args":{"number":7}}' % job)

        told = [flag.replace("NAME", queue.name) for flag in flags]
        outcome = outside.run("work", f"{name}:app", "--until", "empty", "--json", *told)

        assert outcome.code == 0, outcome.stderr
        assert json.loads(outcome.stdout)["done"] == done
        (result,) = client.queue(f"{queue.name}-b").results()
        assert result.result == b"21"


def test_work_refuses_queues_that_are_no_weights(cli: Cli, module: str) -> None:
    outcome = cli("work", f"{module}:double", "--queues", "images=many")

    assert outcome.code == 2
    assert "'images=many' is not NAME or NAME=WEIGHT, such as images=3" in outcome.stderr


@pytest.mark.parametrize(
    ("reference", "told"),
    [
        ("nowhere:make", "there is no module 'nowhere'"),
        ("json.nowhere:make", "there is no module 'json.nowhere'"),
        ("json:nowhere", "json has no 'nowhere'"),
        ("MODULE:number", "MODULE:number is int, not a function"),
        ("MODULE", "does not name a function; write it as package.module:function"),
        ("broken:make", "broken cannot be imported: ZeroDivisionError: division by zero"),
        ("importing:make", "importing cannot be imported: ModuleNotFoundError"),
    ],
)
def test_work_without_a_handler_says_what_is_missing(
    cli: Cli, folder: Path, module: str, reference: str, told: str
) -> None:
    (folder / "broken.py").write_text("1 / 0\n")
    (folder / "importing.py").write_text("import not_installed\n")

    outcome = cli("work", reference.replace("MODULE", module))

    assert outcome.code == 2
    assert told.replace("MODULE", module) in outcome.stderr
    assert len(outcome.stderr.splitlines()) == 1
    assert "Traceback" not in outcome.stderr


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--concurrency", "0"], "--concurrency"),
        (["--lease", "0"], "lease: 0.0 is outside 0.001 to 604800 seconds"),
        (["--timeout", "0"], "--timeout: 0.0 is outside 0.01 to 604800 seconds"),
        (["--loop", "trio"], "trio is for a handler that is 'async def'"),
        (["--serializer", "xml"], "xml"),
        (["-q", "no spaces"], "no spaces"),
    ],
)
def test_work_refuses_wrong_options(cli: Cli, module: str, flags: list[str], told: str) -> None:
    outcome = cli("work", f"{module}:double", "--until", "empty", *flags)

    assert outcome.code == 2
    assert told in outcome.stderr


def test_work_without_a_server_ends_with_3(module: str) -> None:
    outcome = Cli()("work", f"{module}:double", "--connect-timeout", "0")

    assert outcome.code == 3
    assert "queueber serve" in outcome.stderr


@pytest.mark.parametrize("processes", ["0", "1"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_handlers_finish_and_gives_back_the_rest(
    outside: Cli, queue: queueber.Queue, folder: Path, module: str,
    number: signal.Signals, processes: str,
) -> None:  # fmt: skip
    queue.add([b"x"] * 9)
    command = [
        "work", f"{module}:hang", "-q", queue.name, "-c", "2", "--prefetch", "3", "-p", processes,
    ]  # fmt: skip
    working = outside.start(*command)
    wait_until_begun(folder, 2)

    working.send_signal(number)
    while queue.stats().released_total < 3:
        assert working.poll() is None
    (folder / "go").touch()
    _, stderr = working.communicate(timeout=WAIT_SECONDS)

    assert working.returncode == 0, stderr
    assert b"Traceback" not in stderr
    lines = [json.loads(line) for line in stderr.splitlines()]
    (told,) = [line for line in lines if line["event"] == "worker_stopping"]
    assert (told["handlers"], told["seconds"]) == (2, 30)
    assert "a second signal abandons them" in told["action"]
    stats = queue.stats()
    assert (stats.completed_total, stats.ready, stats.leased) == (2, 7, 0)


@pytest.mark.parametrize("processes", ["0", "1"])
def test_a_second_signal_gives_back_everything_and_ends_at_once(
    outside: Cli, queue: queueber.Queue, folder: Path, module: str, processes: str
) -> None:
    queue.add([b"x"] * 9)
    working = outside.start("work", f"{module}:hang", "-q", queue.name, "-c", "2", "-p", processes)
    wait_until_begun(folder, 2)

    working.send_signal(signal.SIGTERM)
    while queue.stats().released_total == 0:
        assert working.poll() is None
    working.send_signal(signal.SIGTERM)
    _, stderr = working.communicate(timeout=WAIT_SECONDS)

    assert working.returncode == 130, stderr
    assert b"Traceback" not in stderr
    stats = queue.stats()
    assert (stats.completed_total, stats.ready, stats.leased) == (0, 9, 0)


def test_work_ends_with_1_when_all_handlers_run_longer_than_their_timeout(
    outside: Cli, queue: queueber.Queue, module: str
) -> None:
    queue.add([b"x"] * 3)

    outcome = outside.run("work", f"{module}:hang", "-q", queue.name, "-c", "2", "--timeout", "0.2")

    assert outcome.code == 1, outcome.stderr
    assert outcome.stderr.splitlines()[-1].startswith("Error: all 2 handlers ran longer than 0.2 s")
    assert "Traceback" not in outcome.stderr
    stats = queue.stats()
    assert (stats.failed_total, stats.ready, stats.leased) == (2, 1, 0)


def test_a_second_signal_interrupts_a_coroutine_that_blocks_the_loop(
    outside: Cli, queue: queueber.Queue, folder: Path, module: str
) -> None:
    """Nothing runs on the loop then that could obey a signal; what blocks it is named."""
    (folder / "sitecustomize.py").write_text(
        "import queueber.worker.pool.loop_monitor as m\nm.BLOCKED_SECONDS = 0.3\n"
    )
    queue.add(b"x")
    path = f"{folder}:{outside.environment['PYTHONPATH']}"
    there = Cli(outside.address, {**outside.environment, "PYTHONPATH": path})
    working = there.start("work", f"{module}:block", "-q", queue.name, stderr=subprocess.PIPE)
    assert working.stderr is not None
    told = b""
    while b"event_loop_blocked" not in told:
        told = working.stderr.readline()

    working.send_signal(signal.SIGINT)
    time.sleep(0.2)  # the first one cannot be obeyed
    assert working.poll() is None
    working.send_signal(signal.SIGINT)
    _, stderr = working.communicate(timeout=WAIT_SECONDS)

    assert f"{module}.py:24 in block" in json.loads(told)["where"]
    assert working.returncode == 130, stderr
    stats = queue.stats()
    assert (stats.ready, stats.leased, stats.dead) == (1, 0, 0)


def test_two_signals_end_a_worker_whose_coroutines_would_all_block(
    outside: Cli, queue: queueber.Queue, folder: Path, module: str
) -> None:
    """Both come before anybody has noticed that the loop is blocked, and others wait to begin."""
    queue.add([b"x"] * 20)
    command = ["work", f"{module}:block", "-q", queue.name, "-c", "3"]
    working = outside.start(*command, stderr=subprocess.PIPE)
    while queue.stats().leased == 0:
        assert working.poll() is None
    time.sleep(0.2)

    for _ in range(2):
        working.send_signal(signal.SIGINT)
        time.sleep(0.2)  # else they are one
    _, stderr = working.communicate(timeout=WAIT_SECONDS)

    assert working.returncode == 130, stderr
    assert b"Traceback" not in stderr
    stats = queue.stats()
    assert (stats.ready, stats.leased, stats.dead) == (20, 0, 0)


def test_ctrl_c_while_processes_start_ends_them_without_a_traceback(
    outside: Cli, queue: queueber.Queue, folder: Path, module: str
) -> None:
    (folder / "sitecustomize.py").write_text(
        # A process imports the program first, as it would a slow one.
        "import multiprocessing, pathlib, sys, time\n"
        "if 'spawn_main' in ' '.join(sys.orig_argv):\n"
        f"    pathlib.Path({str(folder / 'starting')!r}).touch()\n"
        "    time.sleep(1)\n"
    )
    path = f"{folder}:{outside.environment['PYTHONPATH']}"
    working = subprocess.Popen(
        [sys.executable, "-m", "queueber", "work", f"{module}:hang", "-q", queue.name, "-p", "1"],
        env={
            **os.environ,
            "QUEUEBER_ADDRESS": outside.address,
            **outside.environment,
            "PYTHONPATH": path,
        },
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    while not (folder / "starting").exists():
        assert working.poll() is None

    os.killpg(working.pid, signal.SIGINT)
    _, stderr = working.communicate(timeout=WAIT_SECONDS)

    assert working.returncode == 0, stderr
    assert b"Traceback" not in stderr
    assert b"worker_process_died" not in stderr


def test_ctrl_c_in_a_terminal_reaches_all_processes_and_counts_once(
    outside: Cli, queue: queueber.Queue, folder: Path, module: str
) -> None:
    queue.add([b"x"] * 2)
    command = ["work", f"{module}:hang", "-q", queue.name, "-c", "2", "-p", "1"]
    working = subprocess.Popen(
        [sys.executable, "-m", "queueber", *command],
        env={**os.environ, "QUEUEBER_ADDRESS": outside.address, **outside.environment},
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        wait_until_begun(folder, 2)

        os.killpg(working.pid, signal.SIGINT)
        time.sleep(0.2)  # a process that took it for itself would have gone by now
        assert working.poll() is None
        (folder / "go").touch()
        _, stderr = working.communicate(timeout=WAIT_SECONDS)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(working.pid, signal.SIGKILL)

    assert working.returncode == 0, stderr
    assert queue.stats().completed_total == 2


def test_work_on_a_terminal_shows_one_live_line(
    outside: Cli, queue: queueber.Queue, module: str
) -> None:
    queue.add([b"x"] * 3)
    ours, theirs = pty.openpty()

    working = outside.start(
        "work", f"{module}:double", "-q", queue.name, "--until", "empty", stderr=theirs
    )
    working.communicate(timeout=WAIT_SECONDS)
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(ours, 65536):
            shown += chunk
    except OSError:
        pass  # the other end is closed
    os.close(ours)

    assert working.returncode == 0
    assert b"0 in flight, 0 waiting, 3 done, 0 failed, 0 refused" in b" ".join(shown.split())
    assert b"worker_ended" not in shown


def test_work_without_results_removes_what_is_done(
    cli: Cli, queue: queueber.Queue, module: str
) -> None:
    queue.add(b"x")

    outcome = cli("work", f"{module}:length", "-q", queue.name, "--no-results", "--until", "empty")

    assert outcome.code == 0
    assert (queue.stats().removed_total, list(queue.results())) == (1, [])


def test_work_without_progress_logs_no_counters(
    cli: Cli, queue: queueber.Queue, module: str
) -> None:
    queue.add(b"x")
    command = ["work", f"{module}:double", "-q", queue.name, "--until", "empty"]

    outcome = cli(*command, "--no-progress", "--shutdown-timeout", "1")

    assert (outcome.code, queue.stats().completed_total) == (0, 1)
    assert "worker_ended" not in outcome.stderr
