"""The path of a stream, which is the name of its topic."""

import re
from collections.abc import Mapping
from urllib.parse import unquote

from queueber.gateway.problems import Problem, invalid, of_http
from queueber.limits import TOPIC_NAME_BYTES_MAX

ROOT = "/v1/stream/"
OWN = "__ds/"
"""Topics whose names begin so hold what the gateway itself keeps; none of them is a stream."""
_OF_QUEUES = "queue/"

_NAME = re.compile(rf"[A-Za-z0-9._/-]{{1,{TOPIC_NAME_BYTES_MAX}}}")


def stream_path(names: Mapping[str, str]) -> str:
    """The path that a request names; raises a `Problem` if no stream can have it."""
    return checked(names["path"], "path")


def source_path(text: str) -> str:
    """The path of a fork's source, given as its address on this server or as its path."""
    path = unquote(text).removeprefix(ROOT).lstrip("/")
    return checked(path, "stream-forked-from")


def is_stream(path: str) -> bool:
    """Whether a stream can have the path."""
    try:
        checked(path, "path")
    except Problem:
        return False
    return True


def checked(path: str, argument: str) -> str:
    if not _NAME.fullmatch(path):
        raise invalid(
            f"{argument}: a stream's path has 1 to {TOPIC_NAME_BYTES_MAX} letters, digits, dots, "
            f"slashes, - and _; {path[:100]!r} is none"
        )
    if not {".", ".."}.isdisjoint(path.split("/")):
        raise invalid(f"{argument}: . and .. have a meaning in URLs, and are no part of a path")
    if path.startswith(_OF_QUEUES):
        raise invalid(f"{argument}: paths that begin with {_OF_QUEUES} are those of queues")
    if path.startswith(OWN) or path == OWN.rstrip("/"):
        raise no_stream(path)
    return path


def no_stream(path: str) -> Problem:
    return of_http(404, f"stream: there is none at {path[:TOPIC_NAME_BYTES_MAX]}")
