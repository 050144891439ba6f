"""One of the worker processes: started, listened to, and restarted after it died."""

import contextlib
import multiprocessing
import signal
from multiprocessing.context import SpawnProcess

from queueber.clock import Clock
from queueber.limits import SECOND_MS
from queueber.worker.counters import WorkerStats, sum_stats, totals_of
from queueber.worker.event_logger import EventLogger
from queueber.worker.processes import worker_process
from queueber.worker.processes.main_guard import PROCESS_NAME
from queueber.worker.processes.process_messages import Ended, Logged
from queueber.worker.worker_settings import WorkerSettings

DEATHS_MAX = 20
"""Deaths in a row of processes that never had an item. A process that had items may have died of
one of them: the server finds out which, and that item ends as a dead letter."""

_RESTART_MS_FIRST = 50
_RESTART_MS_MAX = 3 * SECOND_MS

# Not fork: it would copy locks of the parent's threads in whatever state they are.
_spawning = multiprocessing.get_context("spawn")


class ProcessSlot:
    def __init__(self, number: int, settings: WorkerSettings, is_until_empty: bool) -> None:
        self.number = number
        self._settings = settings
        self._is_until_empty = is_until_empty
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

    def start(self) -> None:
        commands, self._commands = _spawning.Pipe(duplex=False)
        self.messages, messages = _spawning.Pipe(duplex=False)
        self.ended = None
        self.has_reported = False
        self._current = WorkerStats()
        self.process = _spawning.Process(
            target=worker_process.main,
            args=(self._settings, self._is_until_empty, commands, messages),
            name=f"{PROCESS_NAME}{self.number}",
        )
        # Ctrl-C is blocked until the process has installed its own handling of it.
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
                if isinstance(message, Logged):
                    write = log.info if message.level == "info" else log.warning
                    write(message.event, **message.facts, process=self.number)
                    continue
                if isinstance(message, Ended):
                    self.ended = message
                    message = message.stats
                self._current = message
                if message.in_flight or message.waiting or message.done or message.failed:
                    self.deaths = 0

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

    def delay_restart(self, clock: Clock) -> None:
        """After a death: start the next process, but later each time."""
        self.deaths += 1
        pause_ms = min(_RESTART_MS_FIRST * 2 ** (self.deaths - 1), _RESTART_MS_MAX)
        self.start_at_ms = clock.now_ms() + pause_ms

    def stats(self) -> WorkerStats:
        return sum_stats([self._earlier, self._current])
