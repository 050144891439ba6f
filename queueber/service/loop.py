"""What the service asks of the loop it runs on. An asyncio loop has all of it."""

from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from typing import Any, Protocol

# Futures of any loop: awaited, resolved and cancelled by name only.
Future = Any


class TimerHandle(Protocol):
    def cancel(self) -> None: ...


class Loop(Protocol):
    def time(self) -> float: ...
    def create_future(self) -> Future: ...
    def create_task(self, coroutine: Coroutine[Any, Any, Any]) -> Future: ...
    def call_soon(self, callback: Callable[..., object], *args: Any) -> object: ...
    def call_soon_threadsafe(self, callback: Callable[..., object], *args: Any) -> object: ...
    def run_in_executor(self, executor: Executor, work: Callable[[], Any]) -> Future: ...
    def call_later(
        self, delay: float, callback: Callable[..., object], *args: Any
    ) -> TimerHandle: ...


def fail(future: Future, error: BaseException) -> None:
    """Let whoever waits have the error, if anybody still does."""
    if not future.done():
        future.set_exception(error)
        future.exception()  # else the loop complains when nobody does
