"""Recorders: they record a history while it happens, in memory or in a file for each process."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import Any, TextIO

from faults.history import (
    Call,
    History,
    Outcome,
    begin_line,
    end_line,
    from_lines,
    merged,
    numbers,
)

Now = Callable[[], float]

SENT_AGAIN = (
    "poll", "extend", "release", "pause", "resume", "ack_results", "cancel", "purge", "redrive",
    "reschedule", "publish", "read", "ack",
)  # fmt: skip
"""Calls that a client retries by itself if the answer is lost, or sends in parts. An error of any
kind concerns the last attempt only: an earlier one may have been done."""


def monotonic_ms() -> float:
    """A clock that all processes of a machine share."""
    return time.monotonic() * 1000


class Pending:
    """A call under way."""

    def __init__(self, begun: Call, number: int) -> None:
        self.begun = begun
        self.number = number
        self.answer: Mapping[str, Any] = {}

    def answered(self, **answer: Any) -> None:
        self.answer = answer


class Recorder:
    """Threads may share it. With a file, begun calls are known even if the process dies."""

    def __init__(self, now_ms: Now = monotonic_ms, file: TextIO | None = None) -> None:
        self._now_ms = now_ms
        self._file = file
        self._lock = threading.Lock()
        self._numbers = numbers()
        self.history = History()

    @contextmanager
    def call(
        self, client: str, operation: str, queue: str = "default", **arguments: Any
    ) -> Iterator[Pending]:
        """Record a call that the body makes; the body sets the answer.

        A `QueueberError` that means that nothing happened is a refusal, unless the client may have
        sent the call more than once. Any other error leaves the outcome unknown. The caller gets
        every error.
        """
        pending = self.begin(client, operation, queue, arguments)
        try:
            yield pending
        except BaseException as error:
            is_sent_once = operation not in SENT_AGAIN
            self.end(pending, outcome_of(error) if is_sent_once else Outcome.UNKNOWN)
            raise
        self.end(pending, Outcome.OK)

    def begin(
        self, client: str, operation: str, queue: str, arguments: Mapping[str, Any]
    ) -> Pending:
        begun = Call(
            client, operation, self._now_ms(), inf, Outcome.UNKNOWN, arguments, queue=queue
        )
        with self._lock:
            pending = Pending(begun, next(self._numbers))
            self._write(lambda: begin_line(pending.number, begun))
        return pending

    def end(self, pending: Pending, outcome: Outcome) -> Call:
        begun = pending.begun
        ended = Call(
            begun.client,
            begun.operation,
            begun.began_ms,
            inf if outcome is Outcome.UNKNOWN else self._now_ms(),
            outcome,
            begun.arguments,
            pending.answer,
            begun.queue,
        )
        with self._lock:
            self.history.calls.append(ended)
            self._write(lambda: end_line(pending.number, ended))
        return ended

    def _write(self, line: Callable[[], Mapping[str, Any]]) -> None:
        if self._file is not None:
            self._file.write(json.dumps(line()) + "\n")
            self._file.flush()


def outcome_of(error: BaseException) -> Outcome:
    """The outcome of a call that was sent once."""
    # Imported here: a client of the original schema records as well, and cannot load our schema.
    from queueber.errors import Internal, OutcomeUnknown, QueueberError

    is_doubtful = isinstance(error, (OutcomeUnknown, Internal))
    is_certain = isinstance(error, QueueberError) and not is_doubtful
    return Outcome.REFUSED if is_certain else Outcome.UNKNOWN


@contextmanager
def recording_to(file: Path) -> Iterator[Recorder]:
    """A recorder for one process, whose file `read_histories` reads."""
    with file.open("a") as lines:
        yield Recorder(file=lines)


def read_histories(folder: Path) -> History:
    """The histories of all processes that recorded into a folder."""
    return merged(_read(path) for path in sorted(folder.glob("*.jsonl")))


def _read(path: Path) -> History:
    whole = [line for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]
    # A process that was killed during a write leaves half a line, which does not count.
    return from_lines(json.loads(line) for line in whole)
