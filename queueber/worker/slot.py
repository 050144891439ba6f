"""The place of one worker process: who is in it, what it says, and when it may be filled again."""

import contextlib
import multiprocessing
import signal
from multiprocessing.context import SpawnProcess

from queueber.clock import Clock
from queueber.limits import SECOND_MS
from queueber.worker import child
from queueber.worker.contact import Journal
from queueber.worker.messages import Ended, Logged
from queueber.worker.settings import Settings
from queueber.worker.tally import WorkerStats, added_up, totals_of

DEATHS_MAX = 20
"""In a row, of processes that never had an item. One that had some may have died of one of them,
which the server finds out: that ends when the culprit has no attempts left."""

_PAUSE_MS_FIRST = 50
_PAUSE_MS_MAX = 3 * SECOND_MS

# A thread or a lock of the parent must not be copied into a child.
_spawning = multiprocessing.get_context("spawn")


class Slot:
    def __init__(self, number: int, settings: Settings, is_until_empty: bool) -> None:
        self.number = number
        self._settings = settings
        self._is_until_empty = is_until_empty
        self._before = WorkerStats()
        """Totals of those who were here before."""
        self._now = WorkerStats()
        self.deaths = 0
        """In a row: since a process here has last had an item."""
        self.start_at_ms = 0
        """When it may be filled again."""
        self.process: SpawnProcess | None = None
        self.ended: Ended | None = None

    def start(self) -> None:
        child_ears, self._mouth = _spawning.Pipe(duplex=False)
        self.ears, child_mouth = _spawning.Pipe(duplex=False)
        self.ended = None
        self._now = WorkerStats()
        self.process = _spawning.Process(
            target=child.main,
            args=(self._settings, self._is_until_empty, child_ears, child_mouth),
            name=f"queueber-worker-{self.number}",
        )
        # Until the child has said what Ctrl-C means to it, there must be none.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        # The only open ends are the child's now, so that its death ends the pipe.
        child_ears.close()
        child_mouth.close()

    def tell(self, word: str) -> None:
        if self.process is not None:
            with contextlib.suppress(OSError):  # it has gone
                self._mouth.send(word)

    def hear(self, journal: Journal) -> None:
        """Take in what the process has said so far."""
        with contextlib.suppress(EOFError, OSError):
            while self.ears.poll():
                message = self.ears.recv()
                if isinstance(message, Logged):
                    say = journal.info if message.level == "info" else journal.warning
                    say(message.event, **message.facts, process=self.number)
                    continue
                if isinstance(message, Ended):
                    self.ended = message
                    message = message.stats
                self._now = message
                if message.in_flight or message.waiting or message.done or message.failed:
                    self.deaths = 0

    def clear(self, journal: Journal) -> int:
        """The process has ended: hear its last words, and return its exit code."""
        assert self.process is not None
        self.hear(journal)
        self.process.join()
        code = self.process.exitcode
        self.process.close()
        self.process = None
        self.ears.close()
        self._mouth.close()
        self._before = added_up([self._before, totals_of(self._now)])
        self._now = WorkerStats()
        return code or 0

    def put_off(self, clock: Clock) -> None:
        """After a death: fill the place again, but later each time."""
        self.deaths += 1
        pause_ms = min(_PAUSE_MS_FIRST * 2 ** (self.deaths - 1), _PAUSE_MS_MAX)
        self.start_at_ms = clock.now_ms() + pause_ms

    def stats(self) -> WorkerStats:
        return added_up([self._before, self._now])
