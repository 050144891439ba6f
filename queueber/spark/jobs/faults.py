"""Errors of Spark, turned into one sentence that says who must act.

Spark answers a mistyped path with a page of Java. Its own errors have names in brackets. Ours are
the last line of a Python traceback in it.
"""

import re

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from queueber import errors
from queueber.errors import Internal, InvalidArgument, QueueberError


class SparkFailed(Internal):
    """Spark could not do the job; a write that it did not commit has added nothing."""


_OURS = re.compile(r"^queueber(?:\.\w+)*\.(\w+): (.+)$", re.MULTILINE)
_NAMED = re.compile(r"\[([A-Z][A-Z0-9_.]+)\] (.*?)(?: SQLSTATE: \w+.*)?$", re.MULTILINE)
_CAUSE = re.compile(r"^(?:Caused by)?: (?:[\w.$]+: )?(.+)$", re.MULTILINE)
_PYTHON = re.compile(r"^\w[\w.]*(?:Error|Exception): .+$", re.MULTILINE)
_PATH = re.compile(r"\w+:/\S*?(?=\. |\.?$| already)")

_UNREADABLE = ("CAST_INVALID_INPUT", "CAST_OVERFLOW", "MALFORMED_RECORD", "FAILED_READ_FILE")
_USERS = (
    *_UNREADABLE,
    "PATH_NOT_FOUND",
    "PATH_ALREADY_EXISTS",
    "UNABLE_TO_INFER_SCHEMA",
    "DATATYPE_MISMATCH",
    "INVALID_SCHEMA",
    "COLUMN_ALREADY_EXISTS",
)
"""Errors about the input or the output: their names begin so."""


def what_failed(error: Exception) -> QueueberError | None:
    """The error as the user should see it; None if Spark did not raise it."""
    if not isinstance(error, PySparkException | Py4JError):
        return None
    text = str(error)
    if ours := _OURS.findall(text):
        name, message = ours[-1]
        kind = getattr(errors, name, SparkFailed)
        return kind(message) if issubclass(kind, QueueberError) else SparkFailed(message)
    found = dict(_NAMED.findall(text))
    for name, message in found.items():
        if name.startswith(_USERS):
            return InvalidArgument(_in_our_words(name, message))
    if "JAVA_GATEWAY_EXITED" in found:
        return SparkFailed(
            "Spark did not start; it needs Java 17 or newer: install openjdk-17-jre-headless, or "
            "set JAVA_HOME"
        )
    return SparkFailed(f"Spark failed: {_sentence(text, found)}")


def is_unreadable_input(error: Exception) -> bool:
    """Whether Spark could not read a file or a record of the input."""
    return isinstance(error, PySparkException | Py4JError) and any(
        name.startswith(_UNREADABLE) for name, _ in _NAMED.findall(str(error))
    )


def _in_our_words(name: str, message: str) -> str:
    path = _PATH.search(message)
    match name.partition("."):
        case ("PATH_NOT_FOUND", *_) if path:
            return f"there is no input at {path[0]}"
        case ("PATH_ALREADY_EXISTS", *_) if path:
            return f"{path[0]} is there already; give --overwrite, or another path"
        case ("CAST_INVALID_INPUT", *_):
            # What follows is advice on SQL.
            return message.partition(" because ")[0]
        case ("FAILED_READ_FILE", *_) if path:
            return f"cannot read {path[0]} in this format"
        case ("MALFORMED_RECORD_IN_PARSING", *_):
            return "the input has a record that cannot be read in its format"
        case _:
            return message


def _sentence(text: str, found: dict[str, str]) -> str:
    """The best guess at the reason."""
    if python := _PYTHON.findall(text):
        return str(python[-1])
    if found:
        return next(iter(found.values()))
    causes = _CAUSE.findall(text)
    return str(causes[-1] if causes else text.strip().splitlines()[0])
