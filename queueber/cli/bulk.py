"""Adding many items: in calls of bounded size, a few of them under way, in order."""

import contextlib
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field

from queueber.cli.exits import INTERRUPTED, Failure, failure_of
from queueber.cli.new_calls import NewCall
from queueber.cli.output import counted
from queueber.client import AddedIds, Producer, Queue
from queueber.errors import Aborted, InvalidArgument, OutcomeUnknown, QueueberError, Unavailable

_CALLS_MAX = 4
"""Calls under way: the next is made ready and sent while the server still works on the last."""


@dataclass(slots=True)
class Bulk:
    """Adds, and keeps count of what is certain."""

    queue: Queue | Producer
    is_idle: Callable[[], bool]
    """Whether the input makes us wait: then there is time to hear what became of the calls."""

    on_ids: Callable[[AddedIds], None]
    """Told the ids of each call, in order."""

    on_progress: Callable[[int, int], None]
    """Told how many items were done with, and how many bytes of input they were."""

    added: int = 0
    duplicates: int = 0
    """Items whose keys were there already."""
    added_before: int = 0
    """Items that an earlier run of this producer has added."""
    unknown: int = 0
    _waiting: "deque[tuple[NewCall, Future[AddedIds]]]" = field(default_factory=deque)

    def run(self, calls: Iterable[NewCall]) -> None:
        """Add everything. A `Failure` says how many items were added for certain."""
        try:
            for call in calls:
                if len(self._waiting) == _CALLS_MAX:
                    self._settle()
                self._waiting.append((call, self.queue.add_soon(call.contents, **call.options)))
                while self._waiting and self.is_idle():
                    self._settle()
            while self._waiting:
                self._settle()
        except QueueberError as error:
            self._settle_rest(is_lost=isinstance(error, OutcomeUnknown | Unavailable))
            failure = failure_of(error)
            told = self._certain(helps_again=not isinstance(error, Aborted | InvalidArgument))
            raise Failure(f"{failure.message}; {told}", failure.exit_code) from error
        except KeyboardInterrupt:
            self.unknown += sum(len(call.contents) for call, _ in self._waiting)
            told = self._certain(helps_again=True)
            raise Failure(f"interrupted; {told}", INTERRUPTED) from None

    def _settle(self) -> None:
        """Wait for the oldest call. One that an interrupt kept us from hearing of stays."""
        call, future = self._waiting[0]
        try:
            ids = future.result()
        except QueueberError as error:
            self._waiting.popleft()
            if isinstance(error, OutcomeUnknown):
                self.unknown += len(call.contents)
            raise
        self._waiting.popleft()
        self._count(call, ids)

    def _count(self, call: NewCall, ids: AddedIds) -> None:
        if ids.is_repeat:
            self.added_before += len(call.contents)
        else:
            self.duplicates += sum(ids.duplicates)
            self.added += len(ids) - sum(ids.duplicates)
        if ids:
            self.on_ids(ids)
        self.on_progress(len(call.contents), call.input_bytes)

    def _settle_rest(self, *, is_lost: bool) -> None:
        """Learn what became of the calls that were under way when the first one failed.

        If the server is lost, nobody will tell soon: what has no answer yet is unknown.
        """
        while self._waiting:
            call, future = self._waiting[0]
            if is_lost and not future.done():
                self.unknown += len(call.contents)
                self._waiting.popleft()
                continue
            # The first failure is the one to report.
            with contextlib.suppress(QueueberError):
                self._settle()

    def _certain(self, *, helps_again: bool) -> str:
        told = f"{counted(self.added, 'item')} {'was' if self.added == 1 else 'were'} added"
        if isinstance(self.queue, Producer) and helps_again:
            return f"{told} for certain, and the same command again adds what is missing"
        return f"{told}, and up to {self.unknown:,} more may have been" if self.unknown else told
