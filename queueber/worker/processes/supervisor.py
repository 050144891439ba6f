"""Several worker processes: started, supervised, restarted when they die, stopped together."""

import contextlib
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from multiprocessing.connection import Connection, Pipe, wait
from multiprocessing.reduction import ForkingPickler

from queueber.client import connect
from queueber.client.transport.futures import answer_future, fail_future
from queueber.clock import SystemClock
from queueber.errors import InvalidArgument
from queueber.limits import SECOND_MS
from queueber.worker.pool.source import create_sources
from queueber.worker.processes import worker_process
from queueber.worker.processes.process_slot import ProcessSlot
from queueber.worker.processes.worker_process import STOP, STOP_NOW
from queueber.worker.progress import (
    EventLogger,
    WorkerStats,
    log_stopping,
    sum_stats,
)
from queueber.worker.worker_settings import WorkerSettings

_WAIT_SECONDS = 1.0
_END_MS_MAX = 10 * SECOND_MS
"""How long processes may take to end, beyond the time that their handlers have."""

DEATHS_MAX = 20
"""Deaths in a row of processes that never had an item. A process that had items may have died of
one of them: the server finds out which, and that item ends as a dead letter."""

_TELL_MS_MAX = SECOND_MS
"""How long processes have to tell what they wait for, after the first signal to stop."""

_SILENCE_SECONDS_MAX = 10.0
"""How long a process may be silent when the time of one of its handlers is over; it sends numbers
four times a second unless a handler blocks its loop, or never lets go of the interpreter."""

_RESTART_MS_FIRST = 50
_RESTART_MS_MAX = 3 * SECOND_MS


class WorkersDied(RuntimeError):
    """Worker processes died again and again before they had an item; their error output says why.

    Not a `QueueberError`: no call failed.
    """


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
        self._tell_at_ms = 0
        """When to say at the latest what the processes wait for; 0: nothing is to be said."""
        self._failure: Exception | None = None
        self.on_connected: Callable[[], object] = lambda: None

    def stop(self, *, now: bool) -> None:
        """May be called from every thread, and from a signal handler."""
        with contextlib.suppress(OSError):  # the run has ended
            self._commands.send(STOP_NOW if now else STOP)

    def stats(self) -> WorkerStats:
        return sum_stats([slot.stats() for slot in self._slots])

    def run(self) -> None:
        try:
            if not self._make_contact():
                return
            self.on_connected()
            while not self._is_over():
                for slot in self._slots:
                    if self._is_vacant(slot) and slot.start_at_ms <= self._clock.now_ms():
                        slot.start()
                self._wait()
                for slot in self._slots:
                    self._supervise(slot)
                self._tell_stopping()
        finally:
            for slot in self._slots:
                if slot.process is not None:
                    slot.process.kill()
                    slot.reap(self._log)
            self._received.close()
            self._commands.close()
        if self._failure is not None:
            raise self._failure

    def _make_contact(self) -> bool:
        """Create the queue if it is missing. Processes that start later find it, or wait for it.

        They also wait for a server that restarts; one that is missing at the start is an error.
        False: the worker was told to stop meanwhile.
        """
        is_made, made = Pipe(duplex=False)
        contact: Future[None] = Future()
        contact.add_done_callback(lambda _: made.close())

        def make() -> None:
            try:
                self._create_sources()
                answer_future(contact, None)
            except BaseException as error:  # noqa: BLE001  raised below
                fail_future(contact, error)

        threading.Thread(target=make, name="queueber-contact", daemon=True).start()
        with is_made:
            wait([is_made, self._received])
        if not contact.done():
            return False
        contact.result()
        return True

    def _create_sources(self) -> None:
        settings = self._settings
        seconds = settings.connect_seconds
        with connect(
            settings.address, connect_timeout=seconds, token=settings.token, tls=settings.tls
        ) as client:
            create_sources(client, settings)

    def _is_over(self) -> bool:
        if any(slot.process is not None for slot in self._slots):
            return False
        return bool(self._command) or all(self._is_done(slot) for slot in self._slots)

    def _is_done(self, slot: ProcessSlot) -> bool:
        """Whether its process found the queue empty or done. Others that end are restarted."""
        ended = slot.ended
        return self._settings.until is not None and ended is not None and not ended.is_retired

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
        if command == STOP and not self._command:
            self._tell_at_ms = self._clock.now_ms() + _TELL_MS_MAX
        self._command = command
        for slot in self._slots:
            slot.send(command)
        shutdown_ms = 0 if command == STOP_NOW else self._shutdown_ms
        self._kill_at_ms = self._clock.now_ms() + shutdown_ms + _END_MS_MAX

    def _tell_stopping(self) -> None:
        """Say how many handlers the processes wait for, once all that run have told theirs."""
        told = [slot.stopping_handlers for slot in self._slots if slot.process is not None]
        if self._tell_at_ms and (None not in told or self._clock.now_ms() > self._tell_at_ms):
            self._tell_at_ms = 0
            handlers = sum(each or 0 for each in told)
            log_stopping(self._log, self._settings.shutdown_seconds, handlers)

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
        limit = _SILENCE_SECONDS_MAX
        if slot.silent_seconds > limit and slot.late_seconds() > limit:
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
