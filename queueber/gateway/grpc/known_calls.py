"""The asyncio server of grpcio (1.85), with two things that it lacks.

It reads the path of a call that it does not know as UTF-8, in the loop that takes all calls: one
path that is none ends the whole server. So that loop does not get those calls, which are reset.

And a call of a caller that does not read cannot be ended: its status waits behind what was not
read. Here it can be reset, which lets that go.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any
from weakref import WeakKeyDictionary

import grpc.aio
from grpc._cython import cygrpc  # type: ignore[attr-defined]  # compiled

_watching: "WeakKeyDictionary[asyncio.Task[Any], asyncio.Task[Any]]" = WeakKeyDictionary()
"""For the task of each call the one that waits until its caller has gone, and keeps the call."""


def reset_call() -> None:
    """Have the call of the present task be reset when that has ended; the last call that was taken
    when the next one is, for so long the server keeps it."""
    task = asyncio.current_task()
    watching = None if task is None else _watching.pop(task, None)
    if watching is not None:
        watching.cancel()


class _Loop:
    """The loop as the server uses it. Remembers which task has made which."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.create_future = loop.create_future

    def create_task(self, coroutine: Coroutine[Any, Any, Any], **named: Any) -> Any:
        made = self._loop.create_task(coroutine, **named)
        making = asyncio.current_task()
        if making is not None:
            _watching[made] = making
        return made

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)


class _KnownCalls(cygrpc.AioServer):  # type: ignore[misc]  # compiled, and untyped
    async def _request_call(self) -> Any:
        """The next call of a method that is not registered. It is reset when nobody holds it."""
        while True:
            await super()._request_call()


def known_calls_server(options: list[tuple[str, int]]) -> grpc.aio.Server:
    """Give it all its methods with `add_registered_method_handlers` before it is started."""
    server: Any = grpc.aio.server(options=options)
    # As the class itself makes one: no pool of threads, handlers, interceptors or limit of calls.
    loop = _Loop(asyncio.get_running_loop())
    server._server = _KnownCalls(loop, None, [], [], options, None)
    found: grpc.aio.Server = server
    return found
