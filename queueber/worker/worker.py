"""The public face: a worker is told what to do, and runs until it is told to stop."""

import asyncio
import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any, Protocol

from queueber.config import DEFAULT_LISTEN
from queueber.worker.handlers import Handler
from queueber.worker.outcomes import Deserializer, Serializer
from queueber.worker.settings import OnRefused, Settings
from queueber.worker.tally import WorkerStats

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class _Run(Protocol):
    """Of one process or of several."""

    def run(self) -> None: ...

    def stop(self, *, now: bool) -> None: ...

    def stats(self) -> WorkerStats: ...


class Worker:
    """A pool of handlers for one queue.

    `handler` gets each item and returns its result; what it raises fails the item. A plain function
    runs in `concurrency` threads; `async def` runs as so many tasks of asyncio, or of trio with
    `loop="trio"`. It may be named as "package.module:function". `processes` runs so many copies of
    all this, each in a process and with a connection of its own; 0 stays in this process.

    The pool holds up to `prefetch` items beside those in handlers (as many, unless told). Leases
    are `lease` seconds long and are extended for as long as their items are here. When one is lost
    all the same, coroutines are cancelled, `item.is_lost` is true, and `on_refused` is called with
    each item whose handler had begun, on the pool's own loop: it must be quick.

    A result is bytes or None, or whatever `serializer` turns into bytes: a function, or "json".
    `deserializer` likewise makes `item.value` of `item.contents`.
    """

    def __init__(
        self,
        address: str = DEFAULT_LISTEN,
        *,
        handler: Handler | str,
        queue: str = "default",
        concurrency: int = 8,
        processes: int = 0,
        prefetch: int | None = None,
        lease: float = 60,
        grace: float = 30,
        loop: str = "asyncio",
        serializer: Serializer | str | None = None,
        deserializer: Deserializer | str | None = None,
        on_refused: OnRefused | None = None,
        connect_timeout: float = 5,
        show: bool = True,
    ) -> None:
        """`show`: a live line on a terminal, log lines elsewhere."""
        self._settings = Settings(
            address=address,
            queue=queue,
            handler=handler,
            concurrency=concurrency,
            processes=processes,
            prefetch=concurrency if prefetch is None else prefetch,
            lease_seconds=lease,
            grace_seconds=grace,
            connect_seconds=connect_timeout,
            loop=loop,
            serializer=serializer,
            deserializer=deserializer,
            on_refused=on_refused,
        )
        self._show = show
        self._run: _Run | None = None
        self._lock = threading.RLock()
        self._stops = 0
        """How often it was told to stop, in this run or before it: twice means now."""
        self.was_hurried = False
        """Whether the last run was told to end at once."""

    def run(self, *, until_empty: bool = False) -> WorkerStats:
        """Work until `stop`, SIGTERM or SIGINT; with `until_empty`, until nothing is ready.

        Told to stop, it polls no more, gives back what no handler has begun, and waits up to
        `grace` seconds for the others; a second signal gives those back too and ends at once. In a
        thread other than the main one no signals are heard.

        Raises `Unavailable` when the server is not there at the start; later it is waited for.
        """
        from queueber.worker.display import make_display, make_journal

        _check_no_loop_runs()
        # One that was named is imported now, so that what is wrong with it is known at once.
        self._settings.find_handler()
        journal = make_journal()
        with self._lock:
            if self._run is not None:
                raise RuntimeError("this worker runs already; make another")
            run = self._run = self._make_run(journal, until_empty)
            for at in range(self._stops):
                run.stop(now=at > 0)
        try:
            display = make_display(self._settings.queue, run.stats, journal)
            with _signals(self.stop), display if self._show else contextlib.nullcontext():
                run.run()
        finally:
            with self._lock:
                self.was_hurried = self._stops > 1
                self._run, self._stops = None, 0
        return run.stats()

    def stop(self, *, now: bool = False) -> None:
        """Have `run` end in order, or `now`. May be called from every thread, and before `run`.

        The second time it means now.
        """
        with self._lock:
            self._stops += 2 if now else 1
            if self._run is not None:
                self._run.stop(now=self._stops > 1)

    def stats(self) -> WorkerStats:
        """How it goes."""
        run = self._run
        return run.stats() if run is not None else WorkerStats()

    def _make_run(self, journal: Any, is_until_empty: bool) -> _Run:
        if self._settings.processes:
            from queueber.worker.supervisor import Supervisor

            return Supervisor(self._settings, journal, is_until_empty=is_until_empty)
        from queueber.worker.local import LocalRun

        return LocalRun(self._settings, journal, is_until_empty=is_until_empty)


def _check_no_loop_runs() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError(
        "run() blocks, and would hold up the loop; use 'await asyncio.to_thread(worker.run)'"
    )


@contextlib.contextmanager
def _signals(stop: Any) -> Iterator[None]:
    """In the main thread, let signals call `stop` for a while."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        stop()

    before = {number: signal.signal(number, on_signal) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
