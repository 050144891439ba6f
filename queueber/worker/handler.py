"""The handler: a function or the name of one, one call of it, and how the call ended."""

import functools
import importlib
import inspect
import json
import traceback
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from pathlib import Path
from typing import Any, Literal

from queueber.errors import InvalidArgument
from queueber.limits import DELAY_MS_MAX, ERROR_BYTES_MAX, SECOND_MS
from queueber.worker.work_item import WorkItem

Handler = Callable[[WorkItem], object]
Serializer = Callable[[Any], bytes]
Deserializer = Callable[[bytes], Any]
SerializerName = Literal["json"]
Duration = float | timedelta
"""A number of seconds or a `timedelta`."""

TIMEOUT_SECONDS_MAX = 7 * 24 * 3600

_FRAMES_KEPT = 5
"""The innermost calls of a traceback: enough to find the line, little to store."""

_WORKER_FOLDER = str(Path(__file__).parent)


# --- how a handler ends ---------------------------------------------------------------------------


def to_seconds(
    argument: str, duration: Duration, low: float = 0, high: float = TIMEOUT_SECONDS_MAX
) -> float:
    """Raises `InvalidArgument`, which names the argument, for what is not within the range."""
    seconds = duration.total_seconds() if isinstance(duration, timedelta) else duration
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise InvalidArgument(f"{argument}: {seconds!r} is not a number of seconds or a timedelta")
    if not low <= seconds <= high:
        raise InvalidArgument(f"{argument}: {seconds} is outside {low:g} to {high:g} seconds")
    return seconds


class Retry(Exception):
    """Raised by a handler: the attempt failed; try the item again after `delay`.

    `delay` is a number of seconds or a `timedelta`. Without it the backoff of the queue decides.
    Every try counts as an attempt.
    """

    def __init__(self, reason: str = "", *, delay: Duration | None = None) -> None:
        super().__init__(reason)
        delay_max = DELAY_MS_MAX // SECOND_MS
        self.delay = None if delay is None else to_seconds("delay", delay, high=delay_max)


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
        lines = traceback.format_list(theirs[-_FRAMES_KEPT:])
        return Failed(truncated("\n".join([headline, *map(str.rstrip, lines)])))
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


# --- which handler --------------------------------------------------------------------------------


def load(reference: str) -> Any:
    """Import what `package.module:name` names; `InvalidArgument` says why that is impossible."""
    module_name, colon, path = reference.partition(":")
    if not colon or not module_name or not path:
        raise InvalidArgument(
            f"handler: {reference!r} does not name a function; write it as package.module:function"
        )
    try:
        found: Any = importlib.import_module(module_name)
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and _is_part_of(error.name, module_name):
            raise InvalidArgument(
                f"handler: there is no module {error.name!r}; it is looked for in the current "
                "directory and on PYTHONPATH"
            ) from None
        raise InvalidArgument(
            f"handler: {module_name} cannot be imported: {type(error).__name__}: {error}"
            f"{_where(error)}"
        ) from error
    for name in path.split("."):
        if not hasattr(found, name):
            raise InvalidArgument(f"handler: {module_name} has no {path!r}")
        found = getattr(found, name)
    return found


def _is_part_of(missing: str | None, module_name: str) -> bool:
    """Whether the module itself is missing, rather than something that it imports."""
    return missing is not None and f"{module_name}.".startswith(f"{missing}.")


def _where(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""


def resolve(handler: object) -> Handler:
    """The handler itself, imported if it was given by name."""
    found: Any = load(handler) if isinstance(handler, str) else handler
    if not callable(found):
        shown = handler if isinstance(handler, str) else repr(handler)
        raise InvalidArgument(f"handler: {shown} is {type(found).__name__}, not a function")
    function: Handler = found
    return function


def is_coroutine_function(handler: object) -> bool:
    """Also true for a partial, and for an object whose `__call__` is a coroutine function."""
    while isinstance(handler, functools.partial):
        handler = handler.func
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(
        getattr(handler, "__call__", None)  # noqa: B004  the method itself is asked for
    )


# --- one call -------------------------------------------------------------------------------------


def _to_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


# Pickle is not among them: whoever may add an item could run code in the worker.
SERIALIZERS: dict[str, Serializer] = {"json": _to_json}
DESERIALIZERS: dict[str, Deserializer] = {"json": json.loads}


def to_result(returned: object, serializer: Serializer | None) -> bytes:
    """The result that is stored for what a handler returned; `TypeError` if there is none."""
    if returned is None:
        return b""
    if isinstance(returned, bytes | bytearray | memoryview):
        return _plain(returned)
    if inspect.iscoroutine(returned):
        returned.close()
        raise TypeError("the handler returned a coroutine; declare it with 'async def'")
    kind = type(returned).__name__
    if serializer is None:
        raise TypeError(
            f"the handler returned {kind}; return bytes or None, "
            "or give the worker a serializer such as 'json'"
        )
    serialized = serializer(returned)
    if not isinstance(serialized, bytes):
        raise TypeError(f"the serializer made {type(serialized).__name__} of {kind}, not bytes")
    return _plain(serialized)


def _plain(result: bytes | bytearray | memoryview) -> bytes:
    """Exactly `bytes`: a subclass could override `__bytes__`."""
    return bytes(memoryview(result))


def make_call(
    handler: Callable[[WorkItem], object],
    serializer: Serializer | None,
    deserializer: Deserializer | None,
) -> Callable[[WorkItem], bytes | Failed]:
    """A function that never raises: whatever the handler raises, even SystemExit, is a failure."""

    def call(item: WorkItem) -> bytes | Failed:
        try:
            if deserializer is not None:
                item.value = deserializer(item.contents)
            returned = handler(item)
            return returned if type(returned) is bytes else to_result(returned, serializer)
        except BaseException as error:  # noqa: BLE001  every error belongs to its item
            return failure_of(error)

    return call


def make_async_call(
    handler: Callable[[WorkItem], Awaitable[object]],
    serializer: Serializer | None,
    deserializer: Deserializer | None,
    is_cancellation: Callable[[BaseException], bool],
) -> Callable[[WorkItem], Coroutine[Any, Any, bytes | Failed]]:
    """A coroutine that raises only when the pool cancels it, as `is_cancellation` tells."""

    async def call(item: WorkItem) -> bytes | Failed:
        try:
            if deserializer is not None:
                item.value = deserializer(item.contents)
            returned = await handler(item)
            return returned if type(returned) is bytes else to_result(returned, serializer)
        except BaseException as error:
            if is_cancellation(error):
                raise
            return failure_of(error)

    return call
