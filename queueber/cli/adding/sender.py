"""Sends batches to the server: a few at a time, with their answers in order."""

import contextlib
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field

from queueber import AddedIds, Producer, Queue
from queueber.cli.adding.batches import NewBatch
from queueber.cli.exits import INTERRUPTED, Failure, failure_of
from queueber.cli.output import counted
from queueber.errors import Aborted, InvalidArgument, OutcomeUnknown, QueueberError, Unavailable

_CALLS_MAX = 4
"""Calls that wait for an answer: the next batch is read while the server works on these."""


@dataclass(slots=True)
class Sender:
    """Adds batches, and counts the items that were certainly added."""

    queue: Queue | Producer
    is_idle: Callable[[], bool]
    """Whether the input has nothing to read now; then the sender waits for answers instead."""

    on_ids: Callable[[AddedIds], None] | None
    """Called with the ids of each batch, in order."""

    on_progress: Callable[[int, int], None] | None
    """Called with the items of a batch that was answered, and its bytes of input."""

    added: int = 0
    duplicates: int = 0
    """Items that were not added because their key was used before."""
    added_before: int = 0
    """Items that an earlier run of this producer added."""
    unknown: int = 0
    _waiting: "deque[tuple[NewBatch, Future[AddedIds]]]" = field(default_factory=deque)

    def run(self, batches: Iterable[NewBatch]) -> None:
        """Add everything. A `Failure` says how many items were certainly added."""
        try:
            for batch in batches:
                if len(self._waiting) == _CALLS_MAX:
                    self._wait_for_first()
                future = self.queue.add_soon(batch.contents, **batch.arguments)
                self._waiting.append((batch, future))
                while self._waiting and self.is_idle():
                    self._wait_for_first()
            while self._waiting:
                self._wait_for_first()
        except QueueberError as error:
            self._wait_for_rest(is_lost=isinstance(error, OutcomeUnknown | Unavailable))
            failure = failure_of(error)
            added = self._added(can_repeat=not isinstance(error, Aborted | InvalidArgument))
            raise Failure(f"{failure.message}; {added}", failure.exit_code) from error
        except KeyboardInterrupt:
            self.unknown += sum(len(batch.contents) for batch, _ in self._waiting)
            raise Failure(f"interrupted; {self._added(can_repeat=True)}", INTERRUPTED) from None

    def _wait_for_first(self) -> None:
        """Wait for the oldest call. If an interrupt ends the wait, the call stays in the list."""
        batch, future = self._waiting[0]
        try:
            ids = future.result()
        except QueueberError as error:
            self._waiting.popleft()
            if isinstance(error, OutcomeUnknown):
                self.unknown += len(batch.contents)
            raise
        self._waiting.popleft()
        self._count(batch, ids)

    def _count(self, batch: NewBatch, ids: AddedIds) -> None:
        if ids.is_repeat:
            self.added_before += len(batch.contents)
        else:
            self.duplicates += sum(ids.duplicates)
            self.added += len(ids) - sum(ids.duplicates)
        if ids and self.on_ids is not None:
            self.on_ids(ids)
        if self.on_progress is not None:
            self.on_progress(len(batch.contents), batch.input_bytes)

    def _wait_for_rest(self, *, is_lost: bool) -> None:
        """Count the outcomes of the calls that were sent before the first one failed.

        If the server is lost, calls without an answer count as unknown.
        """
        while self._waiting:
            batch, future = self._waiting[0]
            if is_lost and not future.done():
                self.unknown += len(batch.contents)
                self._waiting.popleft()
                continue
            # The first failure is the one to report.
            with contextlib.suppress(QueueberError):
                self._wait_for_first()

    def _added(self, *, can_repeat: bool) -> str:
        text = f"{counted(self.added, 'item')} {'was' if self.added == 1 else 'were'} added"
        if isinstance(self.queue, Producer) and can_repeat:
            return f"{text} for certain, and the same command again adds what is missing"
        return f"{text}, and up to {self.unknown:,} more may have been" if self.unknown else text
