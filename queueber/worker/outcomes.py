"""What becomes of an item: a result in bytes, or a failure in words."""

import inspect
import json
import traceback
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from queueber.errors import InvalidArgument
from queueber.limits import DELAY_MS_MAX, ERROR_BYTES_MAX, SECOND_MS
from queueber.worker.holding import WorkItem

Serializer = Callable[[Any], bytes]
Deserializer = Callable[[bytes], Any]

_FRAMES_SHOWN = 5
"""The innermost calls of a traceback: enough to find the line, little to store."""

_OUR_FOLDER = str(Path(__file__).parent)


class Retry(Exception):
    """Raised by a handler: the item failed for now; try it again after `delay` seconds.

    Without a delay the queue's own backoff decides. Every try counts as an attempt.
    """

    def __init__(self, reason: str = "", *, delay: float | None = None) -> None:
        super().__init__(reason)
        if delay is not None and not 0 <= delay <= DELAY_MS_MAX / SECOND_MS:
            raise InvalidArgument(
                f"delay: {delay!r} is outside 0 to {DELAY_MS_MAX // SECOND_MS} seconds"
            )
        self.delay = delay


@dataclass(frozen=True, slots=True)
class Failed:
    """The item is to be tried again, or dies: its queue decides."""

    error: str
    delay: float | None = None


class Unfinished(Enum):
    """Why a handler has nothing to say of an item."""

    NOT_BEGUN = "its lease was lost before a handler took it"
    CANCELLED = "its handler was cancelled"


Outcome = bytes | Failed | Unfinished


def _to_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


SERIALIZERS: dict[str, Serializer] = {"json": _to_json}
DESERIALIZERS: dict[str, Deserializer] = {"json": json.loads}
# Not pickle: who may add an item could run code in the worker.


def caller(
    handler: Callable[[WorkItem], object],
    serializer: Serializer | None,
    deserializer: Deserializer | None,
) -> Callable[[WorkItem], bytes | Failed]:
    """A plain handler that never raises: whatever it raises, even SystemExit, fails its item."""

    def call(item: WorkItem) -> bytes | Failed:
        try:
            if deserializer is not None:
                item.set_value(deserializer(item.contents))
            result = handler(item)
            return result if type(result) is bytes else _to_bytes(result, serializer)
        except BaseException as error:  # noqa: BLE001  a handler's error is its item's
            return failure_of(error)

    return call


def async_caller(
    handler: Callable[[WorkItem], Awaitable[object]],
    serializer: Serializer | None,
    deserializer: Deserializer | None,
    is_cancelled: Callable[[BaseException], bool],
) -> Callable[[WorkItem], Coroutine[Any, Any, bytes | Failed]]:
    """A coroutine that raises only what `is_cancelled` knows as the pool's own cancelling."""

    async def call(item: WorkItem) -> bytes | Failed:
        try:
            if deserializer is not None:
                item.set_value(deserializer(item.contents))
            result = await handler(item)
            return result if type(result) is bytes else _to_bytes(result, serializer)
        except BaseException as error:
            if is_cancelled(error):
                raise
            return failure_of(error)

    return call


def _to_bytes(result: object, serializer: Serializer | None) -> bytes:
    if result is None:
        return b""
    if isinstance(result, bytes | bytearray | memoryview):
        return _plain(result)
    if inspect.iscoroutine(result):
        result.close()
        raise TypeError("the handler returned a coroutine; declare it with 'async def'")
    kind = type(result).__name__
    if serializer is None:
        raise TypeError(
            f"the handler returned {kind}; return bytes or None, "
            "or give the worker a serializer such as 'json'"
        )
    serialized = serializer(result)
    if not isinstance(serialized, bytes):
        raise TypeError(f"the serializer made {type(serialized).__name__} of {kind}, not bytes")
    return _plain(serialized)


def _plain(result: bytes | bytearray | memoryview) -> bytes:
    """Bytes and nothing else: a subclass may have ideas of its own, such as `__bytes__`."""
    return bytes(memoryview(result))


def failure_of(error: BaseException) -> Failed:
    """The error's name, its message and the innermost calls, as much as a server keeps.

    Never raises, whatever the error does when it is asked: its item would be left with nobody.
    """
    headline = _headline(error)
    try:
        if isinstance(error, Retry):
            return Failed(_cut(headline), error.delay)
        frames = traceback.extract_tb(error.__traceback__)
        theirs = [frame for frame in frames if not frame.filename.startswith(_OUR_FOLDER)]
        return Failed(_cut("\n".join([headline, *_lines(theirs[-_FRAMES_SHOWN:])])))
    except BaseException:  # noqa: BLE001  code of the program's own, as in a loader of modules
        return Failed(_cut(headline))


def _headline(error: BaseException) -> str:
    name = type(error).__name__
    try:
        return f"{name}: {error!s}".removesuffix(": ")
    except BaseException as failure:  # noqa: BLE001  an error that cannot even tell what it is
        return f"{name}: (its message failed with {type(failure).__name__})"


def _lines(frames: list[traceback.FrameSummary]) -> list[str]:
    return [line.rstrip() for line in traceback.format_list(frames)]


def _cut(text: str) -> str:
    return text.encode(errors="backslashreplace")[:ERROR_BYTES_MAX].decode(errors="ignore")
