"""Exit codes: what a script learns without reading our words. The help text shows this table."""

import click

from queueber.errors import (
    DataDirLocked,
    InvalidArgument,
    QueueberError,
    StorageCorrupt,
    StorageFailed,
    Unavailable,
)

NEGATIVE = 1
USAGE = 2
UNREACHABLE = 3
REFUSED = 4
STORE = 5
OUR_FAULT = 70
INTERRUPTED = 130
BROKEN_PIPE = 141

EPILOG = """\b
Exit codes:
  0    it was done
  1    it was not to be: nothing there, not all done, not complete, violations found
  2    wrong usage, or an argument that the server refuses
  3    the server cannot be reached, or cannot do it now
  4    the server or Spark refused, or the outcome is unknown; the message says which
  5    the store cannot be opened, or the server cannot start
  70   a fault of Queueber's own
  130  interrupted, and 141 when the reader of our output has gone

Every command has a --help with an example.
"""


class Failure(click.ClickException):
    """One sentence on stderr, and an exit code."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code  # type: ignore[misc]  # click means it to be set


FLAGS = {
    "delay": "--delay",
    "lease": "--lease",
    "count": "--count",
    "wait": "--wait",
    "seconds": "--for",
    "producer": "--producer",
    "error": "--error",
    "item_bytes_max": "--item-bytes-max",
    "attempts_max": "--attempts-max",
    "backoff": "--backoff",
    "backoff.base": "--backoff-base",
    "backoff.factor": "--backoff-factor",
    "backoff.cap": "--backoff-cap",
    "backoff.jitter": "--backoff-jitter",
    "format": "--format",
    "contents_column": "--contents-column",
    "key_column": "--key-column",
    "priority_column": "--priority-column",
    "delay_column": "--delay-column",
    "visible_at_column": "--visible-at-column",
    "attributes_column": "--attributes-column",
    "write_id": "--write-id",
}
"""What servers and clients call a field, and how it is given here. Others have the same name."""


def failure_of(error: QueueberError) -> Failure:
    return Failure(_with_flag(str(error)), _code_of(error))


def _with_flag(message: str) -> str:
    """A refusal begins with the field that is wrong."""
    field, colon, rest = message.partition(": ")
    return f"{FLAGS.get(field, field)}{colon}{rest}"


def _code_of(error: QueueberError) -> int:
    match error:
        case InvalidArgument():
            return USAGE
        case Unavailable():
            return UNREACHABLE
        case DataDirLocked() | StorageCorrupt() | StorageFailed():
            return STORE
        case _:
            return REFUSED
