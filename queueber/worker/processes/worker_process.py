"""A worker process: one pool, started and stopped by the parent, and its messages to the parent.

A worker process never waits for its parent: a message that does not fit into the pipe is dropped,
except the last one. So a parent that is stopped or slow does not hold up the leases.
"""

import asyncio
import contextlib
import os
import select
import signal
import sys
from collections.abc import MutableSequence
from dataclasses import dataclass, replace
from multiprocessing import process
from multiprocessing.connection import Connection

from queueber.errors import QueueberError
from queueber.worker.handlers.shared_deadlines import SharedDeadlines
from queueber.worker.handlers.work_item import TIMEOUT_SECONDS_MAX
from queueber.worker.pool.background import first_of
from queueber.worker.pool.in_process import run_loop
from queueber.worker.pool.pool import Pool
from queueber.worker.progress import WorkerStats
from queueber.worker.worker_settings import WorkerSettings

STOP = "stop"
STOP_NOW = "stop now"

_STATS_SECONDS = 0.25
_CHARS_MAX = 400
_TRACE_BYTES_MAX = 1500
_LISTED_MAX = 20
"""Keeps a message below 4 KiB, which a pipe takes in one piece if it has any capacity."""

PROCESS_NAME = "queueber-worker-"
MISSING_MAIN_GUARD_CODE = 79

MAIN_GUARD_ADVICE = (
    "a worker process imports the script that starts it, and the script starts the worker again; "
    """put the start under 'if __name__ == "__main__":'"""
)


@dataclass(frozen=True, slots=True)
class Logged:
    level: str
    event: str
    facts: dict[str, object]


@dataclass(frozen=True, slots=True)
class Stopping:
    """The process was told to stop, and waits for so many handlers."""

    handlers: int


@dataclass(frozen=True, slots=True)
class Ended:
    """The last message of a process that ends in order."""

    stats: WorkerStats
    error: QueueberError | None = None
    is_retired: bool = False
    """A handler could not be ended: the process is to be killed, and another started."""


class ParentPipe:
    """Sends messages to the parent. Also the event logger of the worker process."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe

    def info(self, event: str, **facts: object) -> None:
        self.send(Logged("info", event, _short(facts)))

    def warning(self, event: str, **facts: object) -> None:
        self.send(Logged("warning", event, _short(facts)))

    def send(
        self, message: WorkerStats | Logged | Stopping | Ended, *, is_last: bool = False
    ) -> None:
        with contextlib.suppress(OSError):  # the parent is gone
            if is_last or select.select([], [self._pipe], [], 0)[1]:
                self._pipe.send(message)


def _short(facts: dict[str, object]) -> dict[str, object]:
    shown = {name: _shortened(fact) for name, fact in facts.items() if name != "exception"}
    if "exception" in facts:
        # The innermost calls, which say most, are at its end.
        trace = str(facts["exception"]).encode(errors="backslashreplace")[-_TRACE_BYTES_MAX:]
        shown["exception"] = trace.decode(errors="ignore")
    return shown


def _shortened(fact: object) -> object:
    if isinstance(fact, list):
        return [_shortened(each) for each in fact[:_LISTED_MAX]]
    return fact if isinstance(fact, int | float) else str(fact)[:_CHARS_MAX]


def main(
    settings: WorkerSettings,
    commands: Connection,
    messages: Connection,
    deadlines: MutableSequence[float],
) -> None:
    # Ctrl-C reaches all processes of a terminal; the parent decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    parent = ParentPipe(messages)
    # The parent has reached the server and the queue. If the server is restarting now, wait for it;
    # if the queue is missing now, somebody has deleted it.
    patient = replace(
        settings, connect_seconds=TIMEOUT_SECONDS_MAX, must_exist=True, is_replaceable=True
    )
    pool = Pool(patient, parent)
    pool.deadlines = SharedDeadlines(deadlines)
    # Sent at once: it may be the last message of this process, see `ProcessSlot.deaths`.
    pool.on_milestone = lambda: parent.send(pool.stats())
    pool.on_stopping = lambda handlers: parent.send(Stopping(handlers))
    pool.blocked.replace = lambda: parent.send(Ended(pool.stats(), is_retired=True), is_last=True)
    ended_by: QueueberError | None = None
    try:
        run_loop(asyncio.new_event_loop(), _run(pool, commands, parent))
    except QueueberError as error:
        ended_by = error
    parent.send(Ended(pool.stats(), ended_by, pool.is_retiring), is_last=True)


async def _run(pool: Pool, commands: Connection, parent: ParentPipe) -> None:
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, pool.stop)
    loop.add_reader(commands.fileno(), _obey, pool, commands)
    try:
        await first_of(pool.run(), _send_stats(pool, parent))
    finally:
        loop.remove_reader(commands.fileno())


def _obey(pool: Pool, commands: Connection) -> None:
    try:
        pool.stop(now=commands.recv() == STOP_NOW)
    except EOFError:
        # The parent is gone, and nobody else would ever stop this process.
        asyncio.get_running_loop().remove_reader(commands.fileno())
        pool.stop()


async def _send_stats(pool: Pool, parent: ParentPipe) -> None:
    while True:
        parent.send(pool.stats())
        await asyncio.sleep(_STATS_SECONDS)


def check_main_guard() -> None:
    """Refuse to run a worker while a new process imports the script of its parent.

    A script that starts worker processes must start them under `if __name__ == "__main__":`. Each
    new process imports the script; without the guard that import would run the worker again, in
    every process. The process notices it and exits with a code that the supervisor knows.
    """
    current = process.current_process()
    if not getattr(current, "_inheriting", False):
        return
    if current.name.startswith(PROCESS_NAME):
        sys.stdout.flush()
        sys.stderr.flush()
        # Not `sys.exit`: the script may have threads or handlers that would keep it alive.
        os._exit(MISSING_MAIN_GUARD_CODE)
    raise RuntimeError(MAIN_GUARD_ADVICE)
