"""Driver programs of Spark as processes of their own, which a test can kill.

Only one SparkContext can live in a process, and `local-cluster[2,1,1024]` needs one of its own: two
executors, each in a JVM with Python processes below it. A driver is a script under
`tests/spark/drivers/` that says `SparkSession.builder.getOrCreate()`: master and configuration come
from here. What it prints is what the test learns of it.

A driver leads a session of processes, and everything that it starts stays in it: that is how we
know what is ours, down to the Python daemons, which leave the group of their parents.
"""

import contextlib
import functools
import json
import os
import queue
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

ROOT = Path(__file__).parent.parent.parent
DRIVERS = ROOT / "tests" / "spark" / "drivers"

LOCAL = "local[2]"
CLUSTER = "local-cluster[2,1,1024]"

END_SECONDS = 120.0
"""How long a driver may take, unless told otherwise. On a busy machine a cluster starts in 15 s."""

LEFT_SECONDS = 30.0
"""How long executors have to notice that their driver is gone. They do in about a second."""

JAVA_LEAST = 17

# C1 alone and a simple collector: a test is over before better code pays, and there are two cores.
_QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

QUICK: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.extraJavaOptions": _QUICK_JAVA,
    "spark.executor.extraJavaOptions": _QUICK_JAVA,
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
"""What makes Spark start sooner, and keeps it on this machine."""

WARM = (
    "pandas",
    "pyarrow",
    "pyspark.daemon",
    "pyspark.sql.streaming",
    "pyspark.sql.streaming.python_streaming_source_runner",
    "pyspark.sql.worker.commit_data_source_write",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.data_source_pushdown_filters",
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.worker.python_streaming_sink_runner",
    "pyspark.sql.worker.write_into_data_source",
    "pyspark.worker",
    "queueber.cli.spark",
    "queueber.spark.source",
)
"""What programs of Spark import, and the processes that it starts, for `warm_programs`."""


@functools.cache
def why_no_spark() -> str | None:
    """Why Spark cannot run here, for `pytest.skip`; None when it can."""
    java = Path(os.environ["JAVA_HOME"], "bin", "java") if "JAVA_HOME" in os.environ else "java"
    try:
        told = subprocess.run([java, "-version"], capture_output=True, text=True, check=True).stderr
    except (OSError, subprocess.CalledProcessError):
        return "Spark needs Java, which is not there: install openjdk-17-jre-headless"
    version = re.search(r'version "(\d+)', told)
    if version is None or int(version[1]) < JAVA_LEAST:
        return f"Spark needs Java {JAVA_LEAST}; this one is: {told.splitlines()[0]}"
    return None


def spark_environment(
    folder: Path, *, master: str = LOCAL, conf: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The environment of a driver that leaves files in `folder` only."""
    settings = {
        **QUICK,
        "spark.local.dir": str(folder / "local"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        **(conf or {}),
    }
    options = [f"--master {shlex.quote(master)}"]
    options += [f"--conf {shlex.quote(f'{name}={value}')}" for name, value in settings.items()]
    return {
        **os.environ,
        "SPARK_HOME": str(_spark_home(folder)),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYSPARK_SUBMIT_ARGS": " ".join([*options, "pyspark-shell"]),
        "PYTHONPATH": str(ROOT),
        "PYTHONUNBUFFERED": "1",
    }


def _spark_home(folder: Path) -> Path:
    """Spark as it is installed, but in a place of the test: a cluster writes below its home."""
    import pyspark

    home = folder / "spark"
    if not home.exists():
        home.mkdir(parents=True)
        for each in Path(str(pyspark.__file__)).parent.iterdir():
            (home / each.name).symlink_to(each)
    return home


@dataclass(frozen=True)
class Ended:
    """A driver that is over."""

    code: int
    lines: list[str]
    log: str
    """The end of what it and Spark wrote to standard error."""

    @property
    def answer(self) -> object:
        """What it printed last, as JSON."""
        assert self.code == 0, self.log
        return json.loads(self.lines[-1])


@dataclass
class Driver:
    """A driver program that runs. Use `running_driver`."""

    process: "subprocess.Popen[str]"
    log_file: Path
    give_up_at: float
    lines: list[str] = field(default_factory=list)
    _unread: "queue.SimpleQueue[str | None]" = field(default_factory=queue.SimpleQueue)

    def __post_init__(self) -> None:
        assert self.process.stdout is not None
        threading.Thread(target=self._read, args=(self.process.stdout,), daemon=True).start()

    def _read(self, stdout: IO[str]) -> None:
        with stdout:
            for line in stdout:
                self._unread.put(line.rstrip("\n"))
        self._unread.put(None)

    def wait_line(self, start: str) -> str:
        """The rest of the next line that begins with `start`."""
        while True:
            line = self._next_line()
            assert line is not None, f"the driver ended without {start!r}:\n{self.log()}"
            if line.startswith(start):
                return line.removeprefix(start).strip()

    def _next_line(self) -> str | None:
        try:
            line = self._unread.get(timeout=max(0.0, self.give_up_at - time.monotonic()))
        except queue.Empty:
            raise AssertionError(f"the driver takes too long:\n{self.log()}") from None
        if line is not None:
            self.lines.append(line)
        return line

    def wait(self) -> Ended:
        """Let it run to its end."""
        while self._next_line() is not None:
            pass
        code = self.process.wait(max(1.0, self.give_up_at - time.monotonic()))
        return Ended(code, self.lines, self.log())

    def kill(self) -> None:
        """End the driver as a crash would: its Python and its JVM, with SIGKILL.

        Executors are not touched. They notice, and end: this returns when they have.
        """
        if self.process.poll() is None:
            # The JVM first: while its parent lives we know which one it is.
            for pid, parent in _session(self.process.pid).items():
                if parent == self.process.pid:
                    _kill(pid)
        self.process.kill()
        self.process.wait()
        self.wait_left()

    def wait_left(self) -> None:
        """Wait until none of its processes is left."""
        give_up_at = time.monotonic() + LEFT_SECONDS
        while left := _session(self.process.pid):
            assert time.monotonic() < give_up_at, f"processes are left: {_commands(left)}"
            time.sleep(0.05)

    def processes(self) -> dict[int, int]:
        """Every process of its session, with its parent."""
        return _session(self.process.pid)

    def close(self) -> None:
        """End whatever is left of it, whatever the test came to."""
        for pid in _session(self.process.pid):
            _kill(pid)
        self.process.wait()

    def log(self) -> str:
        return self.log_file.read_text(errors="replace")[-8000:]


@contextlib.contextmanager
def running_driver(
    script: str,
    *arguments: str,
    folder: Path,
    master: str = LOCAL,
    conf: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
    timeout: float = END_SECONDS,
) -> Iterator[Driver]:
    """Start `tests/spark/drivers/<script>.py`; at the end of the block nothing of it is left."""
    folder = folder / f"{script}-{time.monotonic_ns()}"
    folder.mkdir(parents=True)
    log_file = folder / "stderr"
    with log_file.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, str(DRIVERS / f"{script}.py"), *arguments],
            cwd=folder,
            env={**spark_environment(folder, master=master, conf=conf), **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        )
    driver = Driver(process, log_file, time.monotonic() + timeout)
    try:
        yield driver
    finally:
        driver.close()
        shutil.rmtree(folder, ignore_errors=True)


def _session(leader: int) -> dict[int, int]:
    """The processes that live in the session of a driver, with their parents."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                # The name may hold spaces and brackets; what follows its last bracket is fixed.
                state, parent, _group, session = (
                    (entry / "stat").read_text().rpartition(")")[2].split()[:4]
                )
                if int(session) == leader and state != "Z":
                    found[int(entry.name)] = int(parent)
    return found


def _commands(pids: Mapping[int, int]) -> list[str]:
    told = []
    for pid in pids:
        with contextlib.suppress(OSError):
            words = Path("/proc", str(pid), "cmdline").read_text(errors="replace").split("\0")
            told.append(f"{pid} {' '.join(words)[:120]}")
    return told


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
