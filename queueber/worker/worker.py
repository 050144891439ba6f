"""`Worker`, the public class: takes the arguments, runs a pool or processes, handles signals."""

import asyncio
import contextlib
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import FrameType
from typing import Protocol

import sniffio

from queueber.client.transport.identity import Token
from queueber.config import DEFAULT_LISTEN
from queueber.errors import InvalidArgument
from queueber.limits import LEASE_MS_MAX, SECOND_MS
from queueber.tls import TlsOptions, to_tls
from queueber.worker.handlers.kinds import Kinds
from queueber.worker.handlers.middleware import Middleware
from queueber.worker.handlers.time_limit import to_timeout
from queueber.worker.handlers.work_item import Deserializer, Duration, Serializer, to_seconds
from queueber.worker.progress import EventLogger, WorkerStats, make_event_logger, showing_progress
from queueber.worker.worker_settings import (
    Handler,
    LoopName,
    OnLeaseLost,
    SerializerName,
    Until,
    WorkerSettings,
    to_listed,
    to_weights,
)

DEFAULT_QUEUE = "default"
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class _Run(Protocol):
    """One run, in this process or in several."""

    on_connected: Callable[[], object]

    def run(self) -> None: ...

    def stop(self, *, now: bool) -> None: ...

    def stats(self) -> WorkerStats: ...


class Worker:
    """Runs a handler for every item of a queue, or every message of a topic.

    `handler` gets an item and returns its result; an exception fails the item. A plain function
    runs in `concurrency` threads. An `async def` function runs as `concurrency` tasks of asyncio,
    or of trio with `loop="trio"`. The handler may be a name such as "package.module:function".
    `processes` starts that many processes, each with a connection and `concurrency` handlers of its
    own; 0 works in this process.

    `queue` is "default" unless you name another. `queues` are several: names, or a mapping of names
    to weights. A queue with weight 3 has three times as many items in the worker as one with 1, as
    long as both have enough of them. The handler may also be an `App`, with jobs of many kinds: the
    queues are then all that its jobs name, unless you name some.

    With `topic` and `group` the worker leases
    messages as that shared group, which is created if it is missing: the contents of an item are
    the payload then, and it has `partition` and `offset`, too. Results are not kept.

    The worker leases up to `prefetch` items beside those that handlers have (default: as many as
    `concurrency`). It extends their leases, of `lease` seconds, until their outcomes are reported.
    If a lease is lost all the same, coroutines are cancelled, `item.is_lost` is true, and
    `on_lease_lost` is called with each item whose handler had begun. The worker's loop waits for
    that call, so it must be quick.

    A result is bytes or None, or whatever `serializer` turns into bytes: a function, or "json".
    `deserializer` sets `item.value` from `item.contents` in the same way. With `results=False` the
    worker removes an item that is done, and what the handler returns is dropped.

    `middleware` runs around the handler, the first one outermost: objects of `Middleware`, or names
    of them or of their classes, as for the handler.

    `timeout` is how long a handler may take with one item; None: any time, and a handler that hangs
    holds its item as long as the worker runs. When it is over, the item fails. A coroutine is
    cancelled. A function cannot be ended: a worker process is replaced; without processes the
    worker goes on with one handler fewer, and `run` raises `HandlersStuck` when none is left.

    `timeout`, `lease`, `shutdown_timeout` and `connect_timeout` are numbers of seconds or
    `timedelta`s. `tls` is as for `connect`.
    """

    def __init__(
        self,
        address: str = DEFAULT_LISTEN,
        *,
        handler: Handler | Kinds | str,
        queue: str | None = None,
        queues: Mapping[str, int] | Sequence[str] | None = None,
        topic: str | None = None,
        group: str = "",
        concurrency: int = 8,
        processes: int = 0,
        prefetch: int | None = None,
        timeout: Duration | None = None,
        lease: Duration = 60,
        shutdown_timeout: Duration = 30,
        loop: LoopName = "asyncio",
        results: bool = True,
        serializer: Serializer | SerializerName | None = None,
        deserializer: Deserializer | str | None = None,
        middleware: Sequence[Middleware | str] = (),
        on_lease_lost: OnLeaseLost | None = None,
        connect_timeout: Duration = 5,
        tls: TlsOptions | bool | None = None,
        progress: bool = True,
        token: Token | None = None,
    ) -> None:
        """`progress`: show a live line on a terminal, write log lines elsewhere.

        `token` is that for a protected server, as for `connect`; a function must be importable if
        there are worker processes.
        """
        if queue is not None and topic is not None:
            raise InvalidArgument("topic: a queue was given, too; give one of the two")
        if queues is not None and (queue is not None or topic is not None):
            raise InvalidArgument("queues: a queue or a topic was given, too; give one of them")
        self._names_queue = queue is not None or topic is not None
        self._settings = WorkerSettings(
            address=address,
            queue=DEFAULT_QUEUE if queue is None else queue,
            topic=topic,
            group=group,
            weights=to_weights(queues),
            handler=handler,
            concurrency=concurrency,
            processes=processes,
            prefetch=concurrency if prefetch is None else prefetch,
            timeout_seconds=to_timeout(timeout),
            lease_seconds=to_seconds("lease", lease, 0.001, LEASE_MS_MAX / SECOND_MS),
            shutdown_seconds=to_seconds("shutdown_timeout", shutdown_timeout),
            connect_seconds=to_seconds("connect_timeout", connect_timeout),
            loop=loop,
            keeps_results=results,
            serializer=serializer,
            deserializer=deserializer,
            middleware=to_listed("middleware", middleware, "middleware"),
            on_lease_lost=on_lease_lost,
            token=token,
            tls=to_tls(tls),
        )
        self._shows_progress = progress
        self._run: _Run | None = None
        self._lock = threading.RLock()
        self._stops = 0
        """How often `stop` was called, in this run or before it: twice means now."""
        self.was_hurried = False
        """Whether the last run had to end at once, without waiting for handlers."""

    def __repr__(self) -> str:
        given = self._settings
        name = "queue" if given.topic is None else "topic"
        return f"Worker({given.address!r}, {name}={given.source!r}, handler={given.handler!r})"

    def run(self, *, until: Until | None = None) -> WorkerStats:
        """Work until `stop`, SIGTERM or SIGINT; or until the queue is "empty" or "done".

        Empty: no item is ready, and this worker has none. Done: none is delayed or with other
        workers either, so that no item can become ready any more unless somebody adds one.

        A worker that is stopped polls no more, releases the items that no handler has begun, and
        waits up to `shutdown_timeout` for the handlers. A second signal releases their items too
        and ends the run at once. Signals are handled in the main thread only.

        Raises `Unavailable` if the server cannot be reached at the start; later the worker retries.
        """
        from queueber.worker.processes.worker_process import check_main_guard

        check_main_guard()
        _check_no_loop_runs()
        settings = replace(self._settings, until=until)
        # Imports a handler that was given by name, so that an error shows at once.
        handler = settings.find_handler()
        if isinstance(handler, Kinds):
            queues = {} if self._names_queue else handler.queue_weights()
            settings = replace(settings, handler=handler, weights=settings.weights or queues)
        settings.find_middleware()
        log = make_event_logger()
        with self._lock:
            if self._run is not None:
                raise RuntimeError("this worker is already running; create another one")
            run = self._run = _make_run(settings, log)
            for at in range(self._stops):
                run.stop(now=at > 0)
        try:
            with contextlib.ExitStack() as stack:
                stack.enter_context(_signals(self.stop))
                stack.enter_context(_naming_arguments())
                if self._shows_progress:
                    stack.enter_context(showing_progress(settings.source, run, log))
                run.run()
        finally:
            with self._lock:
                self.was_hurried = self._stops > 1
                self._run, self._stops = None, 0
        return run.stats()

    def stop(self, *, now: bool = False) -> None:
        """Make `run` shut down, or end at once with `now`. A second call means now.

        May be called from every thread, and before `run`.
        """
        with self._lock:
            self._stops += 2 if now else 1
            if self._run is not None:
                self._run.stop(now=self._stops > 1)

    def stats(self) -> WorkerStats:
        """The numbers of the current run."""
        run = self._run
        return run.stats() if run is not None else WorkerStats()


def _make_run(settings: WorkerSettings, log: EventLogger) -> _Run:
    if settings.processes:
        from queueber.worker.processes.supervisor import Supervisor

        return Supervisor(settings, log)
    from queueber.worker.pool.in_process import InProcessRun

    return InProcessRun(settings, log)


def _check_no_loop_runs() -> None:
    try:
        asyncio.get_running_loop()
        call = "asyncio.to_thread(worker.run)"
    except RuntimeError:
        try:
            sniffio.current_async_library()
        except sniffio.AsyncLibraryNotFoundError:
            return
        call = "trio.to_thread.run_sync(worker.run)"
    raise RuntimeError(f"run() blocks and would block the running event loop; use 'await {call}'")


@contextlib.contextmanager
def _naming_arguments() -> Iterator[None]:
    """The name of the queue is `name` on the wire and `queue` here."""
    try:
        yield
    except InvalidArgument as error:
        if not str(error).startswith("name: "):
            raise
        raise InvalidArgument(f"queue: {str(error).removeprefix('name: ')}") from None


@contextlib.contextmanager
def _signals(stop: Callable[[], None]) -> Iterator[None]:
    """In the main thread, let signals call `stop` until the block ends."""
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
            # None: it is of a program in another language that runs this one.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
