"""Messages between a worker process and its parent, over one pipe each way.

A worker process never waits for its parent: a message that does not fit into the pipe is dropped,
except the last one. So a parent that is stopped or slow does not hold up the leases.
"""

import contextlib
import select
from dataclasses import dataclass
from multiprocessing.connection import Connection

from queueber.worker.counters import WorkerStats

STOP = "stop"
STOP_NOW = "stop now"

_CHARS_MAX = 400
_LISTED_MAX = 20
"""Keeps a message below 4 KiB, which a pipe takes in one piece if it has any capacity."""


@dataclass(frozen=True, slots=True)
class Logged:
    level: str
    event: str
    facts: dict[str, object]


@dataclass(frozen=True, slots=True)
class Ended:
    """The last message of a process that ends in order."""

    stats: WorkerStats
    error_code: str = ""
    error_text: str = ""


Message = WorkerStats | Logged | Ended


class ParentPipe:
    """Sends messages to the parent. Also the event logger of the worker process."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe

    def info(self, event: str, **facts: object) -> None:
        self.send(Logged("info", event, _short(facts)))

    def warning(self, event: str, **facts: object) -> None:
        self.send(Logged("warning", event, _short(facts)))

    def send(self, message: Message, *, is_last: bool = False) -> None:
        with contextlib.suppress(OSError):  # the parent is gone
            if is_last or select.select([], [self._pipe], [], 0)[1]:
                self._pipe.send(message)


def _short(facts: dict[str, object]) -> dict[str, object]:
    return {name: _shortened(fact) for name, fact in facts.items()}


def _shortened(fact: object) -> object:
    if isinstance(fact, list):
        return [_shortened(each) for each in fact[:_LISTED_MAX]]
    return fact if isinstance(fact, int | float) else str(fact)[:_CHARS_MAX]
