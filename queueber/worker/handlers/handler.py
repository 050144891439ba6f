"""The handler: a function, or the name of one as in `package.module:function`."""

import functools
import importlib
import inspect
import traceback
from collections.abc import Callable
from typing import Any

from queueber.errors import InvalidArgument
from queueber.worker.work_item import WorkItem

Handler = Callable[[WorkItem], object]


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
