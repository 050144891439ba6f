"""What a worker process and its parent say to each other, over one pipe each way.

A process never waits for its parent: what finds no room in the pipe is dropped, except the last
word. So a parent that is stopped or slow holds up nobody's leases.
"""

import contextlib
import select
from dataclasses import dataclass
from multiprocessing.connection import Connection

from queueber.worker.tally import WorkerStats

STOP = "stop"
STOP_NOW = "stop now"

_CHARS_MAX = 400
_LISTED_MAX = 20
"""A message fits into 4 KiB: a pipe that has any room takes so much in one piece."""


@dataclass(frozen=True, slots=True)
class Logged:
    level: str
    event: str
    facts: dict[str, object]


@dataclass(frozen=True, slots=True)
class Ended:
    """The last word of a process that ends in order."""

    stats: WorkerStats
    error_code: str = ""
    error_text: str = ""


Message = WorkerStats | Logged | Ended


class Mouth:
    """The sending end, in the process. Also its journal."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe

    def info(self, event: str, **facts: object) -> None:
        self.say(Logged("info", event, _short(facts)))

    def warning(self, event: str, **facts: object) -> None:
        self.say(Logged("warning", event, _short(facts)))

    def say(self, message: Message, *, is_last: bool = False) -> None:
        with contextlib.suppress(OSError):  # the parent has gone
            if is_last or select.select([], [self._pipe], [], 0)[1]:
                self._pipe.send(message)


def _short(facts: dict[str, object]) -> dict[str, object]:
    return {name: _shortened(fact) for name, fact in facts.items()}


def _shortened(fact: object) -> object:
    if isinstance(fact, list):
        return [_shortened(each) for each in fact[:_LISTED_MAX]]
    return fact if isinstance(fact, int | float) else str(fact)[:_CHARS_MAX]
