"""How a handler ended: with a result in bytes, with a failure, or without either."""

import traceback
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from queueber.limits import DELAY_MS_MAX, ERROR_BYTES_MAX, SECOND_MS
from queueber.worker.seconds import Duration, check_seconds, in_seconds

_FRAMES_KEPT = 5
"""The innermost calls of a traceback: enough to find the line, little to store."""

_WORKER_FOLDER = str(Path(__file__).parent.parent)


class Retry(Exception):
    """Raised by a handler: the attempt failed; try the item again after `delay`.

    `delay` is a number of seconds or a `timedelta`. Without it the backoff of the queue decides.
    Every try counts as an attempt.
    """

    def __init__(self, reason: str = "", *, delay: Duration | None = None) -> None:
        super().__init__(reason)
        self.delay = None if delay is None else in_seconds(delay)
        if self.delay is not None:
            check_seconds("delay", self.delay, 0, DELAY_MS_MAX // SECOND_MS)


@dataclass(frozen=True, slots=True)
class Failed:
    """The attempt failed. The settings of the queue decide whether the item is retried."""

    error: str
    delay: float | None = None


class Unfinished(Enum):
    """Why there is neither a result nor a failure."""

    NOT_BEGUN = "the lease was lost before a handler took the item"
    CANCELLED = "the pool cancelled the handler"


Outcome = bytes | Failed | Unfinished


def failure_of(error: BaseException) -> Failed:
    """The type of the error, its message and its innermost calls, truncated to 16 KiB.

    Never raises, even if `str(error)` does: nobody would report the item then.
    """
    headline = _headline(error)
    try:
        if isinstance(error, Retry):
            return Failed(truncated(headline), error.delay)
        frames = traceback.extract_tb(error.__traceback__)
        theirs = [frame for frame in frames if not frame.filename.startswith(_WORKER_FOLDER)]
        return Failed(truncated("\n".join([headline, *_lines(theirs[-_FRAMES_KEPT:])])))
    except BaseException:  # noqa: BLE001  code of the user, such as a loader of modules
        return Failed(truncated(headline))


def truncated(text: str) -> str:
    """At most `ERROR_BYTES_MAX` bytes of UTF-8: the server refuses a longer error."""
    return text.encode(errors="backslashreplace")[:ERROR_BYTES_MAX].decode(errors="ignore")


def _headline(error: BaseException) -> str:
    name = type(error).__name__
    try:
        return f"{name}: {error!s}".removesuffix(": ")
    except BaseException as failure:  # noqa: BLE001  code of the user
        return f"{name}: (its message failed with {type(failure).__name__})"


def _lines(frames: list[traceback.FrameSummary]) -> list[str]:
    return [line.rstrip() for line in traceback.format_list(frames)]
