"""`App`: declares jobs, enqueues them, and makes workers for them."""

import sys
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, ParamSpec, Protocol, Self, TypeVar, overload

from queueber.client import Client, Queue, connect
from queueber.client.transport.futures import wait_for_async
from queueber.client.transport.identity import Token
from queueber.config import DEFAULT_LISTEN
from queueber.errors import InvalidArgument
from queueber.jobs.codec import make_codec
from queueber.jobs.handle import Handle, to_item_id
from queueber.jobs.job import RESERVED, Job, to_options
from queueber.jobs.result_readers import ResultReaders
from queueber.tls import TlsOptions
from queueber.worker.handlers.kinds import JobItem, Kind, Kinds
from queueber.worker.handlers.time_limit import to_timeout
from queueber.worker.handlers.work_item import Duration
from queueber.worker.worker import Worker
from queueber.worker.worker_settings import load

P = ParamSpec("P")
R = TypeVar("R")


class Declare(Protocol):
    """Makes a job of a function; its result is what the function returns, awaited or not."""

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> Job[P, R]: ...

    @overload
    def __call__(self, function: Callable[P, R], /) -> Job[P, R]: ...


class App(Kinds):
    """The jobs of a program, by name, and the server that they go through.

    Nothing is sent before the first `enqueue`. The client that it opens then is for all threads; a
    `with` block of the app, or `close`, closes it.
    """

    def __init__(
        self,
        address: str = DEFAULT_LISTEN,
        *,
        token: Token | None = None,
        tls: TlsOptions | bool | None = None,
    ) -> None:
        self.address = address
        self._token = token
        self._tls = tls
        self._codec = make_codec()
        self._jobs: dict[str, Job[..., Any]] = {}
        self._kinds: dict[str, Kind] = {}
        self._lock = threading.Lock()
        self._client: Client | None = None
        self._readers = ResultReaders(lambda: self.client)

    def __repr__(self) -> str:
        return f"<App {self.address} jobs={list(self._jobs)}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the client. Whoever waits for a result gets an error; the next call reconnects."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    @property
    def client(self) -> Client:
        """The client that jobs are sent with."""
        with self._lock:
            if self._client is None:
                self._client = connect(self.address, token=self._token, tls=self._tls)
            return self._client

    # --- declaring --------------------------------------------------------------------------------

    def job(
        self,
        name: str,
        *,
        queue: str = "default",
        timeout: Duration | None = None,
        backoff: Sequence[Duration] | Duration | None = None,
    ) -> Declare:
        """Declare the function below as the job of that name, which items carry.

        The function may be `def` or `async def`. Its arguments and its result are JSON, checked
        against their annotations if msgspec is installed. An argument that is annotated as
        `queueber.WorkItem` gets the item itself.

        `timeout` is how long it may run. `backoff` is after how many seconds it is tried again: one
        number, or one for each failure, the last for all later ones. Without it the settings of the
        queue decide.
        """
        options = to_options(name, queue, timeout, backoff)

        def declare(function: Any, /) -> Any:
            if options.name in self._jobs:
                raise InvalidArgument(f"name: there is a job {options.name!r} already")
            if not callable(function):
                raise InvalidArgument(f"job: {function!r} is not a function")
            job: Job[..., Any] = Job(function, options, self._codec)
            self._jobs[options.name] = job
            self._kinds[options.name] = job.kind()
            return job

        return declare

    @property
    def jobs(self) -> Mapping[str, Job[..., Any]]:
        """All jobs by name."""
        return dict(self._jobs)

    # --- enqueueing -------------------------------------------------------------------------------

    def enqueue(self, job: Job[..., R], /, *args: Any, **arguments: Any) -> Handle[R]:
        """Put a job into its queue, durably, and return a handle of it.

        The arguments are those of its function; `InvalidArgument` says what is wrong with them, and
        nothing is sent then. Further options: `at`, an aware `datetime`, or `delay`, when to begin;
        `key`: a second job with it within the dedup window of the queue is not stored; `priority`
        from 0 to 9; `batch`; and `timeout` in place of that of the job.
        """
        queue, contents, options = self._prepare(job, args, arguments)
        results = self._readers.of(queue.name)
        mark = results.offset
        (item_id,) = queue.add(contents, **options)
        return Handle(job, results, results.expect(job.name, item_id, _mark_of(mark, options)))

    async def enqueue_async(self, job: Job[..., R], /, *args: Any, **arguments: Any) -> Handle[R]:
        """As `enqueue`, awaited, in asyncio or trio."""
        queue, contents, options = self._prepare(job, args, arguments)
        results = self._readers.of(queue.name)
        mark = results.offset
        (item_id,) = await wait_for_async(queue.add_soon(contents, **options))
        return Handle(job, results, results.expect(job.name, item_id, _mark_of(mark, options)))

    def handle(self, job: Job[..., R], item_id: bytes | str) -> Handle[R]:
        """The handle of a job that was enqueued elsewhere, from its id."""
        results = self._readers.of(job.options.queue)
        return Handle(job, results, results.expect(job.name, to_item_id(item_id), None))

    def _prepare(
        self, job: object, args: tuple[Any, ...], given: dict[str, Any]
    ) -> tuple[Queue, bytes, dict[str, Any]]:
        if not isinstance(job, Job) or self._jobs.get(job.name) is not job:
            raise InvalidArgument(
                f"job: {job!r} is not a job of this app; declare it with @app.job"
            )
        options = {name: given.pop(name) for name in RESERVED if name in given}
        timeout = to_timeout(options.pop("timeout", None))
        contents = job.contents(args, given, timeout)
        if (at := options.pop("at", None)) is not None:
            if "delay" in options:
                raise InvalidArgument("at: delay was given, too; give one of the two")
            options["delay"] = _until(at)
        return self.client.queue(job.options.queue), contents, options

    # --- working ----------------------------------------------------------------------------------

    def worker(
        self,
        *,
        queues: Mapping[str, int] | Sequence[str] | None = None,
        address: str | None = None,
        **options: Any,
    ) -> Worker:
        """A worker for the jobs; see `Worker` for the options. The address is that of the app.

        `queues` are those to serve, by default all that jobs name: names, or a mapping of names to
        weights. An item of a job that the app does not have is left to other workers.
        """
        given = {"token": self._token, "tls": self._tls, **options}
        return Worker(address or self.address, handler=self, queues=queues, **given)

    def all_kinds(self) -> list[Kind]:
        return list(self._kinds.values())

    def queue_weights(self) -> dict[str, int]:
        return {job.options.queue: 1 for job in self._jobs.values()}

    def kind_of(self, item: JobItem) -> Kind | str:
        try:
            name, item.value, timeout = self._codec.open(item.contents)
        except ValueError as error:
            item.timeout = None
            return _not_a_job(str(error))
        kind = self._kinds.get(name)
        if kind is None:
            return name
        item.timeout = kind.timeout_seconds if timeout is None else timeout
        return kind

    def __reduce__(self) -> tuple[Callable[[str, str], Any], tuple[str, str]]:
        """Worker processes import it: functions cannot be sent to them."""
        return load, (self._reference(), "handler")

    def _reference(self) -> str:
        """`package.module:name` of the module that has the app, looked for where its jobs are."""
        modules = {job.function.__module__ for job in self._jobs.values()}
        for module_name in sorted(modules):
            for name, found in vars(sys.modules.get(module_name, object)).items():
                if found is self:
                    return f"{module_name}:{name}"
        raise TypeError("the app has no name in a module that has jobs of it")


def _mark_of(offset: int | None, options: Mapping[str, Any]) -> int | None:
    """With a key the id may be that of an earlier job, which is done."""
    return None if options.get("key") else offset


def _not_a_job(reason: str) -> Kind:
    """Fails the item: no worker will ever know it."""

    def fail(_: object) -> None:
        raise ValueError(f"the contents are not those of a job: {reason}")

    return Kind("", fail, is_coroutine=False)


def _until(at: object) -> timedelta:
    if not isinstance(at, datetime) or at.tzinfo is None:
        raise InvalidArgument(f"at: {at!r} is not a datetime with a time zone")
    return max(at - datetime.now(UTC), timedelta())
