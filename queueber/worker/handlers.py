"""Which function handles items: by itself, or by name as in `package.module:function`."""

import functools
import importlib
import inspect
import traceback
from collections.abc import Callable
from typing import Any

from queueber.errors import InvalidArgument
from queueber.worker.holding import WorkItem

Handler = Callable[[WorkItem], object]


def load(reference: str) -> Any:
    """What `package.module:name` names; `InvalidArgument` says in a sentence what is wrong."""
    module_name, colon, path = reference.partition(":")
    if not colon or not module_name or not path:
        raise InvalidArgument(
            f"handler: {reference!r} does not name a function; write it as package.module:function"
        )
    try:
        found: Any = importlib.import_module(module_name)
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and _leads_to(error.name, module_name):
            raise InvalidArgument(
                f"handler: there is no module {error.name!r}; it is looked for in the current "
                "directory and on PYTHONPATH"
            ) from None
        raise InvalidArgument(
            f"handler: {module_name} cannot be imported: {type(error).__name__}: {error}"
            f"{_place(error)}"
        ) from error
    for name in path.split("."):
        if not hasattr(found, name):
            raise InvalidArgument(f"handler: {module_name} has no {path!r}")
        found = getattr(found, name)
    return found


def _leads_to(missing: str | None, module_name: str) -> bool:
    """Whether it is the module itself that is missing, rather than something that it imports."""
    return missing is not None and f"{module_name}.".startswith(f"{missing}.")


def _place(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""


def resolve(handler: object) -> Handler:
    """The handler itself, loaded if it was named."""
    found: Any = load(handler) if isinstance(handler, str) else handler
    if not callable(found):
        shown = handler if isinstance(handler, str) else repr(handler)
        raise InvalidArgument(f"handler: {shown} is {type(found).__name__}, not a function")
    function: Handler = found
    return function


def is_coroutine_function(handler: object) -> bool:
    """Also of a partial, and of an object whose `__call__` is a coroutine function."""
    while isinstance(handler, functools.partial):
        handler = handler.func
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(
        getattr(handler, "__call__", None)  # noqa: B004  the method itself is asked for
    )
