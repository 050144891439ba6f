"""The text of an error as it is stored: its message, its innermost calls, and what is behind it."""

import traceback
from pathlib import Path

from queueber.limits import ERROR_BYTES_MAX

FRAMES_KEPT = 5
"""The innermost calls of a traceback: enough to find the line, little to store."""

FRAMES_KEPT_LATE = 20
"""The same of a handler that ran too long: it is often deep in a library that waits."""

_BEHIND_MAX = 5
"""Errors that are told with one: those of a group, its cause, and so on."""

_PACKAGE = Path(__file__).parent.parent.parent
OWN_FOLDERS = (str(_PACKAGE / "worker"), str(_PACKAGE / "jobs"))
"""Calls in these say nothing to users; errors leave them out."""


def headline(error: BaseException) -> str:
    """The type and the message of an error, and its notes."""
    name = type(error).__name__
    try:
        told = f"{name}: {error!s}".removesuffix(": ")
        return "\n".join([told, *getattr(error, "__notes__", ())])
    except BaseException as failure:  # noqa: BLE001  code of the user
        return f"{name}: (its message failed with {type(failure).__name__})"


def calls(stack: traceback.StackSummary, count: int = FRAMES_KEPT) -> list[str]:
    """The innermost calls that are not the worker's own."""
    theirs = [frame for frame in stack if not frame.filename.startswith(OWN_FOLDERS)]
    return [each.rstrip() for each in traceback.format_list(theirs[-count:])]


def behind(error: BaseException) -> list[str]:
    """The errors of a group, and those that this one came from, each with its calls."""
    lines: list[str] = []
    seen, left = {id(error)}, _directly_behind(error)
    while left and len(seen) <= _BEHIND_MAX:
        how, each = left.pop(0)
        if id(each) not in seen:
            seen.add(id(each))
            stack = traceback.extract_tb(each.__traceback__)
            lines += [f"{how} {headline(each)}", *calls(stack)]
            left += _directly_behind(each)
    return lines


def _directly_behind(error: BaseException) -> list[tuple[str, BaseException]]:
    found: list[tuple[str, BaseException]] = []
    if isinstance(error, BaseExceptionGroup):
        found += [("in the group:", each) for each in error.exceptions]
    if error.__cause__ is not None:
        found.append(("caused by", error.__cause__))
    elif error.__context__ is not None and not error.__suppress_context__:
        found.append(("while handling", error.__context__))
    return found


def truncated(text: str) -> str:
    """At most `ERROR_BYTES_MAX` bytes of UTF-8: the server refuses a longer error."""
    return text.encode(errors="backslashreplace")[:ERROR_BYTES_MAX].decode(errors="ignore")
