"""Where asyncio and trio meet: the one place that knows both.

pycapnp needs an asyncio loop; our structure (nurseries, sweeper, shutdown) is trio's. So trio runs
as a guest of the asyncio loop, on the same thread: asyncio turns, and lets trio have its turn when
trio has something to do. A call never passes through trio on its way, so the guest costs it
nothing. The loop is uvloop's: its turns, callbacks and sockets cost less than asyncio's own.

    asyncio loop   RPC handlers ── service ── engine
      └─ trio      sweeper, shutdown

The guest must end before the loop closes: `run` sees to it.
"""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

import capnp
import outcome
import trio
import uvloop

T = TypeVar("T")


class Bridge:
    """What trio code may ask of the loop that hosts it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, token: trio.lowlevel.TrioToken) -> None:
        self.loop = loop
        self._token = token

    def call_in_trio(self, function: Callable[[], object]) -> None:
        """Run a function in trio's next turn. May be called from any thread."""
        self._token.run_sync_soon(function, idempotent=False)

    async def wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run an asyncio coroutine from a trio task. Cancelling the one cancels the other."""
        task = self.loop.create_task(coroutine)
        is_done = trio.Event()
        task.add_done_callback(lambda _: self._token.run_sync_soon(is_done.set))
        try:
            await is_done.wait()
        except trio.Cancelled:
            task.cancel()
            with trio.CancelScope(shield=True):
                await is_done.wait()
            if not task.cancelled():
                task.exception()
            raise
        return task.result()

    def on_signals(self, function: Callable[[str], object]) -> None:
        """Call a function in trio with the name of each SIGTERM or SIGINT."""
        for number in (signal.SIGTERM, signal.SIGINT):
            report = partial(function, number.name)
            self.loop.add_signal_handler(number, partial(self.call_in_trio, report))

    def on_hangup(self, function: Callable[[], object]) -> None:
        """Call a function in trio at each SIGHUP."""
        self.loop.add_signal_handler(signal.SIGHUP, partial(self.call_in_trio, function))


def run(main: Callable[[Bridge], Awaitable[T]]) -> T:
    """Run a trio main function beside a Cap'n Proto loop, and return what it returns."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_host(main))


async def _host(main: Callable[[Bridge], Awaitable[T]]) -> T:
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[outcome.Outcome[T]] = loop.create_future()

    async def guest() -> T:
        return await main(Bridge(loop, trio.lowlevel.current_trio_token()))

    async with capnp.kj_loop():
        trio.lowlevel.start_guest_run(
            guest,
            run_sync_soon_threadsafe=loop.call_soon_threadsafe,
            run_sync_soon_not_threadsafe=loop.call_soon,
            done_callback=ended.set_result,
            host_uses_signal_set_wakeup_fd=True,
            restrict_keyboard_interrupt_to_checkpoints=True,
        )
        result = await ended
    return result.unwrap()
