"""Middleware: what runs around every call of a handler, in the order in which it was given.

The first one is the outermost: its `before` comes first, its `after` and `on_error` last. What a
middleware does not define costs nothing.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from functools import wraps

from queueber.worker.handlers.work_item import WorkItem

Handler = Callable[[WorkItem], object]
AsyncHandler = Callable[[WorkItem], Awaitable[object]]
Before = Callable[[WorkItem], None]
After = Callable[[WorkItem, object], None]
Around = Callable[[WorkItem], AbstractContextManager[object] | None]
OnError = Callable[[WorkItem, BaseException], None]


class Middleware:
    """Define the methods that you need. They run where the handler does, and must not block.

    What `before` and `after` raise fails the item, as if the handler had raised it.
    """

    def start(self, source: str) -> None:
        """The worker starts to handle items of this queue, or "topic/group". Once a process."""

    def before(self, item: WorkItem) -> None:
        """The handler is about to be called."""

    def after(self, item: WorkItem, returned: object) -> None:
        """The handler has returned."""

    def around(self, item: WorkItem) -> AbstractContextManager[object] | None:
        """A context for the handler to run in, such as a span; None: none for this item."""

    def on_error(self, item: WorkItem, error: BaseException) -> None:
        """The item fails with this error: of the handler, of a middleware, of a serializer.

        `HandlerTimeout` if the handler took too long. It may still run then, and this is called on
        the loop of the worker. What this raises is noted in the error of the item.
        """


class Chain:
    """The middleware of a worker, in order."""

    def __init__(self, middleware: Sequence[Middleware], source: str) -> None:
        self._middleware = middleware
        self._on_error = [e.on_error for e in reversed(middleware) if _defines(e, "on_error")]
        for each in middleware:
            each.start(source)

    def wrap(self, handler: Handler) -> Handler:
        for each in reversed(self._middleware):
            if _defines(each, "before") or _defines(each, "after"):
                handler = _hooked(handler, each.before, each.after)
            if _defines(each, "around"):
                handler = _surrounded(handler, each.around)
        return handler

    def wrap_async(self, handler: AsyncHandler) -> AsyncHandler:
        for each in reversed(self._middleware):
            if _defines(each, "before") or _defines(each, "after"):
                handler = _hooked_async(handler, each.before, each.after)
            if _defines(each, "around"):
                handler = _surrounded_async(handler, each.around)
        return handler

    @property
    def on_error(self) -> OnError | None:
        """Tells all of them that an item failed, and never raises; None: nobody wants to know."""
        return self._tell if self._on_error else None

    def _tell(self, item: WorkItem, error: BaseException) -> None:
        for tell in self._on_error:
            try:
                tell(item, error)
            except BaseException as failure:  # noqa: BLE001  code of the user
                error.add_note(f"on_error of a middleware raised {type(failure).__name__}")


def _defines(middleware: Middleware, name: str) -> bool:
    return getattr(type(middleware), name) is not getattr(Middleware, name)


def _hooked(handler: Handler, before: Before, after: After) -> Handler:
    @wraps(handler)
    def handle(item: WorkItem) -> object:
        before(item)
        returned = handler(item)
        after(item, returned)
        return returned

    return handle


def _hooked_async(handler: AsyncHandler, before: Before, after: After) -> AsyncHandler:
    @wraps(handler)
    async def handle(item: WorkItem) -> object:
        before(item)
        returned = await handler(item)
        after(item, returned)
        return returned

    return handle


def _surrounded(handler: Handler, around: Around) -> Handler:
    @wraps(handler)
    def handle(item: WorkItem) -> object:
        context = around(item)
        if context is None:
            return handler(item)
        with context:
            return handler(item)
        raise RuntimeError("the context of a middleware suppressed the error of the handler")

    return handle


def _surrounded_async(handler: AsyncHandler, around: Around) -> AsyncHandler:
    @wraps(handler)
    async def handle(item: WorkItem) -> object:
        context = around(item)
        if context is None:
            return await handler(item)
        with context:
            return await handler(item)
        raise RuntimeError("the context of a middleware suppressed the error of the handler")

    return handle
