"""Says when a handler blocks the loop of the pool: nothing on the loop itself could.

While the loop is blocked no lease is extended and no signal is obeyed, so the symptoms are lost
leases and a worker that does not stop. A thread looks whether the loop still turns.
"""

import asyncio
import contextlib
import signal
import threading
from collections.abc import Callable, Iterator

from queueber.clock import seconds
from queueber.worker.handlers.time_limit import stack_of_thread
from queueber.worker.progress import EventLogger

BLOCKED_SECONDS = 5.0
"""How long a loop does not turn before it is called blocked."""
HURRIED_SECONDS = 1.0
"""The same once the worker was told to end at once."""

_CHECK_SECONDS = 1.0
_LOOK_SECONDS = 0.1
_FRAMES_SHOWN = 3


class LoopMonitor:
    def __init__(self, log: EventLogger) -> None:
        self._log = log
        self._is_over = threading.Event()
        self._is_blocked = False
        self._is_hurried = threading.Event()
        self._thread_id = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self.on_blocked: Callable[[], object] = lambda: None
        """Called about once a second while the loop is blocked, on the thread that watches it."""

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Watch the running loop until the block ends."""
        self._loop = asyncio.get_running_loop()
        self._thread_id = threading.get_ident()
        thread = threading.Thread(target=self._watch, args=(self._loop,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._is_over.set()

    def interrupt(self, cancel_others: Callable[[], None]) -> None:
        """If a coroutine blocks the loop of this very thread, cancel it where it is.

        Called by a signal handler, which is the one thing that still runs there. The others are
        cancelled, too: those that have not begun would block the loop next. A loop that is found
        to be blocked later is interrupted then.
        """
        self._is_hurried.set()
        if not self._is_blocked or threading.get_ident() != self._thread_id:
            return
        task = asyncio.current_task(self._loop)
        if task is not None:
            self._is_blocked = False
            cancel_others()
            task.cancel()
            raise asyncio.CancelledError

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        while not self._is_over.wait(_CHECK_SECONDS):
            turned, asked_at = threading.Event(), seconds()
            try:
                loop.call_soon_threadsafe(turned.set)
            except RuntimeError:
                return  # it is closed
            # A loop that has ended meanwhile is not blocked.
            if self._turns(turned, asked_at) or self._is_over.is_set():
                continue
            self._is_blocked = True
            self._log.warning(
                "event_loop_blocked",
                seconds=round(seconds() - asked_at, 1),
                where=self._where(),
                action="write a handler that blocks as a plain function, which runs in a thread",
            )
            while not turned.wait(_CHECK_SECONDS):
                if self._is_over.is_set():
                    return
                self._interrupt_again()
                self.on_blocked()
            self._is_blocked = False
            self._log.info("event_loop_free", seconds=round(seconds() - asked_at, 1))

    def _turns(self, turned: threading.Event, asked_at: float) -> bool:
        while not turned.wait(_LOOK_SECONDS):
            limit = HURRIED_SECONDS if self._is_hurried.is_set() else BLOCKED_SECONDS
            if seconds() - asked_at >= limit:
                return False
        return True

    def _interrupt_again(self) -> None:
        """The signal that told the worker to end came too early, or to another coroutine."""
        is_main = self._thread_id == threading.main_thread().ident
        # The worker handles signals if it runs in the main thread, and its processes ignore this.
        if self._is_hurried.is_set() and self._is_blocked and is_main:
            signal.pthread_kill(self._thread_id, signal.SIGINT)

    def _where(self) -> str:
        """The innermost calls, the last one first."""
        frames = stack_of_thread(self._thread_id)[-_FRAMES_SHOWN:]
        return " < ".join(f"{each.filename}:{each.lineno} in {each.name}" for each in frames[::-1])
