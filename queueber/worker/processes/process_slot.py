"""One of the worker processes: started, listened to, and started again after it ended."""

import contextlib
import math
import multiprocessing
import signal
from multiprocessing import resource_tracker
from multiprocessing.context import SpawnProcess
from typing import Any

from queueber.clock import seconds
from queueber.worker.handlers.shared_deadlines import SLOTS_OF_HANDLER, earliest
from queueber.worker.processes import worker_process
from queueber.worker.processes.worker_process import Ended, Logged, Stopping
from queueber.worker.progress import EventLogger, WorkerStats, sum_stats, totals_of
from queueber.worker.worker_settings import WorkerSettings

# Not fork: it would copy locks of the parent's threads in whatever state they are.
_spawning = multiprocessing.get_context("spawn")


class ProcessSlot:
    """One of the processes: started, listened to, and restarted after it died."""

    def __init__(self, number: int, settings: WorkerSettings) -> None:
        self.number = number
        self._settings = settings
        self._earlier = WorkerStats()
        """Totals of the earlier processes of this slot."""
        self._current = WorkerStats()
        self.deaths = 0
        """Deaths in a row, since a process of this slot last had an item."""
        self.start_at_ms = 0
        """When the next process may start."""
        self.process: SpawnProcess | None = None
        self.has_reported = False
        """The current process, or the last one, got as far as to send a message."""
        self.ended: Ended | None = None
        self.silent_seconds = 0.0
        """How long the current process, once it had sent a message, has sent none."""
        self.is_killed = False
        self._deadlines: Any = _spawning.RawArray("d", SLOTS_OF_HANDLER * settings.concurrency)
        """Of the handlers of the current process, which writes them."""
        self.stopping_handlers: int | None = None
        """How many handlers the current process waits for, since it was told to stop."""

    def start(self) -> None:
        commands, self._commands = _spawning.Pipe(duplex=False)
        self.messages, messages = _spawning.Pipe(duplex=False)
        self.ended = None
        self.has_reported = False
        self.silent_seconds = 0.0
        self.is_killed = False
        self.stopping_handlers = None
        self._current = WorkerStats()
        self._deadlines[:] = [0] * len(self._deadlines)
        self.process = _spawning.Process(
            target=worker_process.main,
            args=(self._settings, commands, messages, self._deadlines),
            name=f"{worker_process.PROCESS_NAME}{self.number}",
        )
        # Ctrl-C is blocked until the process has installed its own handling of it. The start of
        # Python's resource tracker would let it through again, so that comes before.
        resource_tracker.ensure_running()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        # Only the process has these ends open now, so its death closes the pipe.
        commands.close()
        messages.close()

    def send(self, command: str) -> None:
        if self.process is not None:
            with contextlib.suppress(OSError):  # the process is gone
                self._commands.send(command)

    def read_messages(self, log: EventLogger) -> None:
        with contextlib.suppress(EOFError, OSError):
            while self.messages.poll():
                message = self.messages.recv()
                self.has_reported = True
                self.silent_seconds = 0.0
                if isinstance(message, Logged):
                    write = log.info if message.level == "info" else log.warning
                    write(message.event, **message.facts, process=self.number)
                    continue
                if isinstance(message, Stopping):
                    self.stopping_handlers = message.handlers
                    continue
                if isinstance(message, Ended):
                    self.ended = message
                    message = message.stats
                self._current = message
                if message.in_flight or message.waiting or message.done or message.failed:
                    self.deaths = 0

    def late_seconds(self) -> float:
        """How long ago the first of the handlers that run now had to end; below 0: none had."""
        at = earliest(self._deadlines)
        return -math.inf if at is None else seconds() - at

    def reap(self, log: EventLogger) -> int:
        """The process has ended: read its last messages, and return its exit code."""
        assert self.process is not None
        self.read_messages(log)
        self.process.join()
        code = self.process.exitcode
        self.process.close()
        self.process = None
        self.messages.close()
        self._commands.close()
        self._earlier = sum_stats([self._earlier, totals_of(self._current)])
        self._current = WorkerStats()
        return code or 0

    def stats(self) -> WorkerStats:
        return sum_stats([self._earlier, self._current])
