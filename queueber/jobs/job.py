"""A kind of job: its function, the options it was declared with, and one call of it."""

import inspect
import re
import types
import typing
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar

from queueber.client.arguments.values import to_number
from queueber.errors import InvalidArgument
from queueber.jobs.codec import NOTHING_OWN, Codec, Own, to_arguments
from queueber.limits import ATTEMPTS_CEILING, DELAY_MS_MAX, QUEUE_NAME_CHARS_MAX, SECOND_MS
from queueber.worker.handlers.kinds import JobItem, Kind, NoHandler
from queueber.worker.handlers.time_limit import to_timeout
from queueber.worker.handlers.work_item import (
    Duration,
    WorkItem,
    check_returned,
    to_seconds,
)
from queueber.worker.worker_settings import (
    function_of,
    is_coroutine_function,
    is_generator_function,
)

P = ParamSpec("P")
R = TypeVar("R")

JOB_NAME_CHARS_MAX = 200
BACKOFF_STEPS_MAX = 100

_QUEUE_NAME = re.compile(rf"[A-Za-z0-9._-]{{1,{QUEUE_NAME_CHARS_MAX}}}")

RESERVED = (
    "after", "after_batch", "at", "attempts", "backoff", "batch", "delay", "expires", "key", "of",
    "priority", "timeout",
)  # fmt: skip
"""Options of `enqueue` and `when_complete`, so no names of arguments."""


@dataclass(frozen=True, slots=True)
class JobOptions:
    """What a job was declared with, checked."""

    name: str
    queue: str
    timeout: float | None
    backoff: tuple[float, ...] | None
    attempts: int | None


def to_options(
    name: object, queue: object, timeout: Duration | None, backoff: Any, attempts: object
) -> JobOptions:
    if not isinstance(name, str) or not 1 <= len(name) <= JOB_NAME_CHARS_MAX:
        raise InvalidArgument(
            f"name: {name!r} is not the name of a job; give 1 to {JOB_NAME_CHARS_MAX} characters"
        )
    if not isinstance(queue, str):
        raise InvalidArgument(f"queue: {queue!r} is not text; it must be str")
    if not _QUEUE_NAME.fullmatch(queue):
        raise InvalidArgument(
            f"queue: {queue!r} is not a queue name; use 1 to {QUEUE_NAME_CHARS_MAX} letters, "
            "digits, dots, dashes and underscores, all ASCII"
        )
    own_attempts = (
        None if attempts is None else to_number("attempts", attempts, limit=ATTEMPTS_CEILING)
    )
    return JobOptions(name, queue, to_timeout(timeout), _to_backoff(backoff), own_attempts)


def _to_backoff(backoff: Any) -> tuple[float, ...] | None:
    if backoff is None:
        return None
    listed = list(backoff) if isinstance(backoff, Sequence) else [backoff]
    if not 1 <= len(listed) <= BACKOFF_STEPS_MAX or isinstance(backoff, str):
        raise InvalidArgument(f"backoff: give 1 to {BACKOFF_STEPS_MAX} delays in seconds")
    longest = DELAY_MS_MAX // SECOND_MS
    return tuple(to_seconds("backoff", each, high=longest) for each in listed)


class Job(NoHandler, Generic[P, R]):
    """What `App.job` makes of a function. It may still be called as the function."""

    def __init__(self, function: Callable[P, Any], options: JobOptions, codec: Codec) -> None:
        self.function = function
        self.options = options
        if is_generator_function(function):
            raise InvalidArgument(f"{options.name}: it is a generator; a call of it runs nothing")
        self.is_coroutine = is_coroutine_function(function)
        plain = function_of(function)
        self.module = getattr(plain, "__module__", "")
        hints = _hints(options.name, plain)
        parameters = _parameters(options.name, function)
        items = [name for name in parameters if _is_item(hints.get(name))]
        if len(items) > 1:
            raise InvalidArgument(f"{options.name}: {', '.join(items)} are both the item; give one")
        self._item_name = items[0] if items else None
        own = [
            each.replace(annotation=hints.get(each.name, Any))
            for each in parameters.values()
            if each.name != self._item_name
        ]
        for each in own:
            _check_parameter(options.name, each)
        returns = hints.get("return", Any)
        self._signature = inspect.Signature(own, return_annotation=returns)
        self._codec = codec.of_job(options.name, self._signature.parameters, returns)
        # Not what the function has in its `__dict__`: it may have names of this object.
        update_wrapper(self, function, updated=())

    @property
    def name(self) -> str:
        return self.options.name

    def __repr__(self) -> str:
        return f"<Job {self.name!r} of queue {self.options.queue!r}>"

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        return self.function(*args, **kwargs)

    def contents(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], own: Own = NOTHING_OWN
    ) -> bytes:
        """The contents of an item; `InvalidArgument` if these are not arguments of the job."""
        arguments = to_arguments(self.name, self._signature, args, kwargs)
        return self._codec.encode(arguments, own)

    def decode_result(self, result: bytes) -> Any:
        return self._codec.decode_result(result) if result else None

    def kind(self) -> Kind:
        """The job as a worker calls it."""
        handler = self._awaited() if self.is_coroutine else self._called()
        options = self.options
        return Kind(self.name, handler, self.is_coroutine, options.timeout, options.backoff)

    # Made once, with all that they need at hand: every item passes one of these.

    def _call(self) -> Callable[[JobItem], Any]:
        function: Callable[..., Any] = self.function
        name, decode = self._item_name, self._codec.decode
        if name is None:
            return self._codec.calling(function)
        return lambda item: function(**decode(item.value), **{name: item})

    def _called(self) -> Callable[[JobItem], bytes]:
        call, encode = self._call(), self._codec.encode_result

        def handle(item: JobItem) -> bytes:
            returned = call(item)
            if returned is None:
                return b""
            try:
                return encode(returned)
            except Exception:
                check_returned(returned)
                raise

        return handle

    def _awaited(self) -> Callable[[JobItem], Coroutine[Any, Any, bytes]]:
        call, encode = self._call(), self._codec.encode_result

        async def handle(item: JobItem) -> bytes:
            returned = await call(item)
            return b"" if returned is None else encode(returned)

        return handle


def _is_item(hint: Any) -> bool:
    """Whether it is `WorkItem`, or that or None."""
    is_union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    return hint is WorkItem or (is_union and WorkItem in typing.get_args(hint))


def _hints(job: str, function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except (NameError, AttributeError, TypeError) as error:
        raise InvalidArgument(
            f"{job}: a type of its function is not found: {error}; types must be importable from "
            "the module of the function"
        ) from None


def _parameters(job: str, function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(function).parameters
    except (ValueError, TypeError):
        raise InvalidArgument(
            f"{job}: {function!r} does not say which arguments it has; wrap it in a function"
        ) from None


def _check_parameter(job: str, parameter: inspect.Parameter) -> None:
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        raise InvalidArgument(f"{job}: {parameter} has no name; name each argument of a job")
    if parameter.kind is parameter.POSITIONAL_ONLY:
        raise InvalidArgument(f"{job}: {parameter.name!r} is positional only; jobs have names")
    if parameter.name in RESERVED:
        raise InvalidArgument(
            f"{job}: {parameter.name!r} is an option of enqueue; name the argument differently"
        )
