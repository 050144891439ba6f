"""Several worker processes: started, watched, started again when they die, stopped together."""

import contextlib
import signal
from multiprocessing.connection import Connection, Pipe, wait
from multiprocessing.reduction import ForkingPickler

from queueber.client import connect
from queueber.clock import SystemClock
from queueber.errors import InvalidArgument, from_wire
from queueber.limits import SECOND_MS
from queueber.worker.contact import Journal
from queueber.worker.messages import STOP, STOP_NOW
from queueber.worker.settings import Settings
from queueber.worker.slot import DEATHS_MAX, Slot
from queueber.worker.tally import WorkerStats, added_up

_WAIT_SECONDS = 1.0
_END_MS_MAX = 10 * SECOND_MS
"""How long processes may take to end, beyond what their handlers are granted."""


class WorkersDied(RuntimeError):
    """Worker processes die again and again: the handler is at fault, and its error output says why.

    Not a `QueueberError`: no call failed, and no server said so.
    """


class Supervisor:
    def __init__(self, settings: Settings, journal: Journal, *, is_until_empty: bool) -> None:
        _check_travels(settings)
        self._settings = settings
        self._grace_ms = round(settings.grace_seconds * SECOND_MS)
        self._journal = journal
        self._is_until_empty = is_until_empty
        self._clock = SystemClock()
        self._slots = [
            Slot(number, settings, is_until_empty) for number in range(settings.processes)
        ]
        self._ears, self._mouth = Pipe(duplex=False)
        self._word = ""
        """What the processes were told last."""
        self._kill_at_ms = 0
        self._failure: Exception | None = None

    def stop(self, *, now: bool) -> None:
        """May be called from every thread, and from a signal handler."""
        with contextlib.suppress(OSError):  # it has ended
            self._mouth.send(STOP_NOW if now else STOP)

    def stats(self) -> WorkerStats:
        return added_up([slot.stats() for slot in self._slots])

    def run(self) -> None:
        # Processes wait for a server that restarts; one that was never there is an error.
        connect(self._settings.address, connect_timeout=self._settings.connect_seconds).close()
        try:
            while not self._is_over():
                self._start_due()
                self._wait()
                for slot in self._slots:
                    self._look_after(slot)
        finally:
            for slot in self._slots:
                if slot.process is not None:
                    slot.process.kill()
                    slot.clear(self._journal)
            self._ears.close()
            self._mouth.close()
        if self._failure is not None:
            raise self._failure

    def _is_over(self) -> bool:
        if any(slot.process is not None for slot in self._slots):
            return False
        return bool(self._word) or all(self._is_done_with(slot) for slot in self._slots)

    def _is_done_with(self, slot: Slot) -> bool:
        """A process that ends by itself is done; one that somebody else has ended is not."""
        return self._is_until_empty and slot.ended is not None

    def _start_due(self) -> None:
        for slot in self._slots:
            if self._is_vacant(slot) and slot.start_at_ms <= self._clock.now_ms():
                slot.start()

    def _is_vacant(self, slot: Slot) -> bool:
        return slot.process is None and not self._word and not self._is_done_with(slot)

    def _wait(self) -> None:
        """Until something is said, somebody dies, or it is time to start or to kill somebody."""
        running = [slot for slot in self._slots if slot.process is not None]
        ears: list[Connection] = [slot.ears for slot in running]
        deaths = [slot.process.sentinel for slot in running if slot.process is not None]
        due = [slot.start_at_ms for slot in self._slots if self._is_vacant(slot)]
        until_ms = min([*due, self._kill_at_ms or self._clock.now_ms() + SECOND_MS])
        seconds = max(0.01, (until_ms - self._clock.now_ms()) / SECOND_MS)
        heard = wait([self._ears, *ears, *deaths], min(seconds, _WAIT_SECONDS))
        if self._ears in heard:
            self._pass_on(self._ears.recv())

    def _pass_on(self, word: str) -> None:
        self._word = word
        for slot in self._slots:
            slot.tell(word)
        grace_ms = 0 if word == STOP_NOW else self._grace_ms
        self._kill_at_ms = self._clock.now_ms() + grace_ms + _END_MS_MAX

    def _look_after(self, slot: Slot) -> None:
        if slot.process is None:
            return
        slot.hear(self._journal)
        if slot.process.is_alive():
            if self._kill_at_ms and self._clock.now_ms() > self._kill_at_ms:
                self._journal.warning("worker_process_killed", process=slot.number)
                slot.process.kill()
            return
        code = slot.clear(self._journal)
        if slot.ended is not None and slot.ended.error_code:
            self._fail(from_wire(f"{slot.ended.error_code}: {slot.ended.error_text}"))
        elif slot.ended is None:
            self._bury(slot, code)

    def _bury(self, slot: Slot, code: int) -> None:
        slot.put_off(self._clock)
        self._journal.warning(
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
            self._pass_on(STOP)


def _check_travels(settings: Settings) -> None:
    try:
        ForkingPickler.dumps(settings)
    except Exception as error:  # noqa: BLE001  pickling runs code of the functions' own
        raise InvalidArgument(
            f"processes: the handler or another function cannot be sent to a process ({error}); "
            "define it at the top of a module, or name it as 'package.module:function'"
        ) from None
