"""Several worker processes: started, supervised, restarted when they die, stopped together."""

import contextlib
import multiprocessing
import signal
import sys
from multiprocessing.connection import Connection, Pipe, wait
from multiprocessing.context import SpawnProcess
from multiprocessing.reduction import ForkingPickler

from queueber.client import connect
from queueber.clock import SystemClock
from queueber.errors import InvalidArgument
from queueber.limits import SECOND_MS
from queueber.worker.pool.source import create_source
from queueber.worker.processes import worker_process
from queueber.worker.processes.worker_process import STOP, STOP_NOW, Ended, Logged
from queueber.worker.progress import EventLogger, WorkerStats, sum_stats, totals_of
from queueber.worker.worker_settings import WorkerSettings

_WAIT_SECONDS = 1.0
_END_MS_MAX = 10 * SECOND_MS
"""How long processes may take to end, beyond the time that their handlers have."""

DEATHS_MAX = 20
"""Deaths in a row of processes that never had an item. A process that had items may have died of
one of them: the server finds out which, and that item ends as a dead letter."""

_SILENCE_SECONDS_MAX = 10.0
"""How much longer than its handlers' time limit a process may be silent; it sends numbers four
times a second unless a handler blocks its loop, or never lets go of the interpreter."""

_RESTART_MS_FIRST = 50
_RESTART_MS_MAX = 3 * SECOND_MS

# Not fork: it would copy locks of the parent's threads in whatever state they are.
_spawning = multiprocessing.get_context("spawn")


class WorkersDied(RuntimeError):
    """Worker processes died again and again before they had an item; their error output says why.

    Not a `QueueberError`: no call failed.
    """


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

    def start(self) -> None:
        commands, self._commands = _spawning.Pipe(duplex=False)
        self.messages, messages = _spawning.Pipe(duplex=False)
        self.ended = None
        self.has_reported = False
        self.silent_seconds = 0.0
        self.is_killed = False
        self._current = WorkerStats()
        self.process = _spawning.Process(
            target=worker_process.main,
            args=(self._settings, commands, messages),
            name=f"{worker_process.PROCESS_NAME}{self.number}",
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
                self.silent_seconds = 0.0
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

    def stats(self) -> WorkerStats:
        return sum_stats([self._earlier, self._current])


class Supervisor:
    def __init__(self, settings: WorkerSettings, log: EventLogger) -> None:
        _check_pickles(settings)
        self._settings = settings
        self._shutdown_ms = round(settings.shutdown_seconds * SECOND_MS)
        self._log = log
        self._clock = SystemClock()
        self._slots = [ProcessSlot(number, settings) for number in range(settings.processes)]
        self._received, self._commands = Pipe(duplex=False)
        self._command = ""
        """The last command to the processes."""
        self._kill_at_ms = 0
        self._failure: Exception | None = None

    def stop(self, *, now: bool) -> None:
        """May be called from every thread, and from a signal handler."""
        with contextlib.suppress(OSError):  # the run has ended
            self._commands.send(STOP_NOW if now else STOP)

    def stats(self) -> WorkerStats:
        return sum_stats([slot.stats() for slot in self._slots])

    def run(self) -> None:
        self._make_contact()
        try:
            while not self._is_over():
                for slot in self._slots:
                    if self._is_vacant(slot) and slot.start_at_ms <= self._clock.now_ms():
                        slot.start()
                self._wait()
                for slot in self._slots:
                    self._supervise(slot)
        finally:
            for slot in self._slots:
                if slot.process is not None:
                    slot.process.kill()
                    slot.reap(self._log)
            self._received.close()
            self._commands.close()
        if self._failure is not None:
            raise self._failure

    def _make_contact(self) -> None:
        """Create the queue if it is missing. Processes that start later find it, or wait for it.

        They also wait for a server that restarts; one that is missing at the start is an error.
        """
        settings = self._settings
        seconds = settings.connect_seconds
        with connect(
            settings.address, connect_timeout=seconds, token=settings.token, tls=settings.tls
        ) as client:
            create_source(client, settings)

    def _is_over(self) -> bool:
        if any(slot.process is not None for slot in self._slots):
            return False
        return bool(self._command) or all(self._is_done(slot) for slot in self._slots)

    def _is_done(self, slot: ProcessSlot) -> bool:
        """Whether its process found the queue empty. Others that end are restarted."""
        ended = slot.ended
        return self._settings.is_until_empty and ended is not None and not ended.is_retired

    def _is_vacant(self, slot: ProcessSlot) -> bool:
        return slot.process is None and not self._command and not self._is_done(slot)

    def _wait(self) -> None:
        """Until a message comes, a process ends, or it is time to start or to kill one."""
        running = [slot for slot in self._slots if slot.process is not None]
        messages: list[Connection] = [slot.messages for slot in running]
        deaths = [slot.process.sentinel for slot in running if slot.process is not None]
        due = [slot.start_at_ms for slot in self._slots if self._is_vacant(slot)]
        until_ms = min([*due, self._kill_at_ms or self._clock.now_ms() + SECOND_MS])
        began_ms = self._clock.now_ms()
        seconds = max(0.01, (until_ms - began_ms) / SECOND_MS)
        ready = wait([self._received, *messages, *deaths], min(seconds, _WAIT_SECONDS))
        # If the wait took longer than it should, this process was suspended, and maybe all were.
        waited = min((self._clock.now_ms() - began_ms) / SECOND_MS, _WAIT_SECONDS)
        for slot in running:
            slot.silent_seconds += waited if slot.has_reported else 0
        if self._received in ready:
            self._send_all(self._received.recv())

    def _send_all(self, command: str) -> None:
        self._command = command
        for slot in self._slots:
            slot.send(command)
        shutdown_ms = 0 if command == STOP_NOW else self._shutdown_ms
        self._kill_at_ms = self._clock.now_ms() + shutdown_ms + _END_MS_MAX

    def _supervise(self, slot: ProcessSlot) -> None:
        if slot.process is None:
            return
        slot.read_messages(self._log)
        if slot.process.is_alive():
            reason = self._reason_to_kill(slot)
            if reason:
                self._log.warning("worker_process_killed", process=slot.number, reason=reason)
                slot.process.kill()
                slot.is_killed = True
            return
        code = slot.reap(self._log)
        if code == worker_process.MISSING_MAIN_GUARD_CODE and not slot.has_reported:
            raise InvalidArgument(f"processes: {worker_process.MAIN_GUARD_ADVICE}")
        if slot.ended is None:
            self._died(slot, code)
        elif slot.ended.is_retired:
            self._log.warning("worker_process_replaced", process=slot.number)
        elif slot.ended.error is not None:
            self._fail(slot.ended.error)

    def _reason_to_kill(self, slot: ProcessSlot) -> str:
        """Empty, unless a running process has to be killed."""
        if slot.is_killed:
            return ""
        if self._kill_at_ms and self._clock.now_ms() > self._kill_at_ms:
            return "it did not end in time"
        if slot.ended is not None and slot.ended.is_retired:
            return "a handler ran longer than its timeout"
        timeout = self._settings.timeout_seconds
        if timeout is not None and slot.silent_seconds > timeout + _SILENCE_SECONDS_MAX:
            return f"silent for {slot.silent_seconds:.0f} s: a handler blocks the process"
        return ""

    def _died(self, slot: ProcessSlot, code: int) -> None:
        slot.deaths += 1
        pause_ms = min(_RESTART_MS_FIRST * 2 ** (slot.deaths - 1), _RESTART_MS_MAX)
        slot.start_at_ms = self._clock.now_ms() + pause_ms
        self._log.warning(
            "worker_process_died",
            process=slot.number,
            reason=signal.Signals(-code).name if code < 0 else f"exit code {code}",
            deaths_in_a_row=slot.deaths,
        )
        if slot.deaths >= DEATHS_MAX:
            self._fail(
                WorkersDied(
                    f"worker process {slot.number} died {slot.deaths} times in a row before it "
                    "had an item; its error output says why"
                )
            )

    def _fail(self, error: Exception) -> None:
        if self._failure is None:
            self._failure = error
            self._send_all(STOP)


def _check_pickles(settings: WorkerSettings) -> None:
    try:
        pickled = bytes(ForkingPickler.dumps(settings))
        if b"__main__" in pickled and not hasattr(sys.modules["__main__"], "__file__"):
            raise TypeError("it is defined in no file")
    except Exception as error:  # noqa: BLE001  pickling runs code of the user
        raise InvalidArgument(
            f"processes: the handler or another function cannot be sent to a process ({error}); "
            "define it at the top of a module, or name it as 'package.module:function'"
        ) from None
