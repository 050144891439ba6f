"""`App`: declares jobs, enqueues them, and makes workers for them."""

import contextlib
import sys
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from typing import Any, ParamSpec, Protocol, Self, TypeVar, overload

from queueber.client import Client, Queue, connect
from queueber.client.arguments.moments import to_delay
from queueber.client.transport.futures import call_in_thread, wait_for_async
from queueber.client.transport.identity import Token
from queueber.config import DEFAULT_LISTEN
from queueber.errors import InvalidArgument
from queueber.jobs.codec import Own, make_codec
from queueber.jobs.handle import Handle, to_item_id
from queueber.jobs.job import RESERVED, Job, to_options
from queueber.jobs.result_readers import ResultReaders
from queueber.jobs.scheduled import ScheduledJobs
from queueber.model import CallbackInfo
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


class App(ScheduledJobs, Kinds):
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
        self._readers: Any = ResultReaders(lambda: self.client)
        self._elsewhere: Any = None

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
        if self._elsewhere is not None:
            client: Client = self._elsewhere
            return client
        with self._lock:
            if self._client is None:
                self._client = connect(self.address, token=self._token, tls=self._tls)
            return self._client

    @contextlib.contextmanager
    def sent_to(self, elsewhere: Any, readers: Any) -> Iterator[None]:
        """Within this block jobs go elsewhere, and results come from there: see
        `queueber.testing.inline`."""
        before = self._elsewhere, self._readers
        self._elsewhere, self._readers = elsewhere, readers
        try:
            yield
        finally:
            self._elsewhere, self._readers = before

    # --- declaring --------------------------------------------------------------------------------

    def job(
        self,
        name: str,
        *,
        queue: str = "default",
        timeout: Duration | None = None,
        backoff: Sequence[Duration] | Duration | None = None,
        attempts: int | None = None,
    ) -> Declare:
        """Declare the function below as the job of that name, which items carry.

        The function may be `def` or `async def`. Its arguments and its result are JSON, checked
        against their annotations if msgspec is installed. An argument that is annotated as
        `queueber.WorkItem` gets the item itself.

        `timeout` is how long it may run. `backoff` is after how many seconds it is tried again: one
        number, or one for each failure, the last for all later ones. `attempts` is how often it may
        fail before its item is a dead letter, 0: without limit; every item carries it from its
        `enqueue` on. Without them the settings of the queue decide.
        """
        options = to_options(name, queue, timeout, backoff, attempts)

        def declare(function: Any, /) -> Any:
            if options.name in self._jobs:
                raise InvalidArgument(f"name: there is a job {options.name!r} already")
            if isinstance(function, Job):
                function = function.function  # of another app, or by another name
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
        from 0 to 9; `batch`; `timeout`, `attempts` and `backoff` in place of those of the job;
        `expires`, seconds or an aware `datetime`: one that no worker has taken by then dies; and
        `after`, handles of jobs of the same queue, or `after_batch`, that it waits for.
        """
        queue, contents, options = self._prepare_add(job, args, arguments)
        results = self._readers.of(queue.name)
        mark = results.offset
        (item_id,) = queue.add(contents, **options)
        return Handle(job, results, results.expect(job.name, item_id, _mark_of(mark, options)))

    async def enqueue_async(self, job: Job[..., R], /, *args: Any, **arguments: Any) -> Handle[R]:
        """As `enqueue`, awaited, in asyncio or trio."""
        if self._client is None and self._elsewhere is None:
            # It connects, which blocks.
            prepared = await call_in_thread(self._prepare_add, job, args, arguments)
        else:
            prepared = self._prepare_add(job, args, arguments)
        queue, contents, options = prepared
        results = self._readers.of(queue.name)
        mark = results.offset
        (item_id,) = await wait_for_async(queue.add_soon(contents, **options))
        return Handle(job, results, results.expect(job.name, item_id, _mark_of(mark, options)))

    def when_complete(
        self, batch: str, job: Job[..., Any], /, *args: Any, **arguments: Any
    ) -> CallbackInfo:
        """Have the server put a job into its queue once every job of a batch is done or dead; see
        `Queue.when_complete`.

        `of` is a job, or the name of a queue, whose batch it is; by default that of the job itself.
        Its function gets the receipt by `queueber.callback_receipt(item.attributes)`, with the item
        as an argument. Further options: `key`, `priority`, `timeout`, `attempts`, `backoff` and
        `expires`, in seconds.
        """
        of = arguments.pop("of", job)
        if not isinstance(of, Job | str):
            raise InvalidArgument(f"of: {of!r} is neither a job nor the name of a queue")
        queue, contents, options = self._prepare(job, args, arguments)
        options.setdefault("attempts", job.options.attempts)
        for name in ("after", "after_batch", "at", "batch", "delay"):
            if options.pop(name, None) is not None:
                raise InvalidArgument(f"{name}: the item of a callback has none")
        source = self.client.queue(of.options.queue if isinstance(of, Job) else of)
        return source.when_complete(batch, contents, to=queue.name, **options)

    def handle(self, job: Job[..., R], item_id: bytes | str) -> Handle[R]:
        """The handle of a job that was enqueued elsewhere, from its id."""
        if not isinstance(job, Job):
            raise InvalidArgument(f"job: {job!r} is not a job; declare it with @app.job")
        results = self._readers.of(job.options.queue)
        return Handle(job, results, results.expect(job.name, to_item_id(item_id), None))

    def _prepare_add(
        self, job: Job[..., Any], args: tuple[Any, ...], given: dict[str, Any]
    ) -> tuple[Queue, bytes, dict[str, Any]]:
        timeout = given.get("timeout")
        queue, contents, options = self._prepare(job, args, given)
        options.setdefault("attempts", job.options.attempts)
        # The contents have it, too, for workers of before; any worker obeys that of the item.
        return queue, contents, options | {"timeout": timeout}

    def _prepare(
        self, job: object, args: tuple[Any, ...], given: dict[str, Any]
    ) -> tuple[Queue, bytes, dict[str, Any]]:
        if not isinstance(job, Job) or self._jobs.get(job.name) is not job:
            raise InvalidArgument(
                f"job: {job!r} is not a job of this app; declare it with @app.job"
            )
        options = {name: given.pop(name) for name in RESERVED if name in given}
        if "of" in options:
            raise InvalidArgument("of: it is an option of when_complete")
        timeout = to_timeout(options.pop("timeout", None))
        own = Own(timeout, options.get("backoff") is not None)
        contents = job.contents(args, given, own)
        if (after := options.pop("after", None)) is not None:
            options["after"] = _ids_of(job, after)
        if options.get("delay", 0) is None:
            del options["delay"]
        if (at := options.pop("at", None)) is not None:
            if "delay" in options:
                raise InvalidArgument("at: delay was given, too; give one of the two")
            options["delay"] = to_delay(at)
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
        item.has_backoff = False
        try:
            name, item.value, own = self._codec.open(item.contents)
        except RecursionError:
            return _not_a_job("they are nested too deeply")
        except Exception as error:  # noqa: BLE001  whatever it is, the item fails, not the worker
            return _not_a_job(str(error))
        kind = self._kinds.get(name)
        if kind is None:
            return name
        if own.timeout is not None:
            item.timeout = own.timeout
        elif item.timeout is None:
            item.timeout = kind.timeout_seconds
        item.has_backoff = own.has_backoff
        return kind

    def __reduce__(self) -> tuple[Callable[[str, str], Any], tuple[str, str]]:
        """Worker processes import it: functions cannot be sent to them."""
        return load, (self.reference or self._reference(), "handler")

    def _reference(self) -> str:
        """`package.module:name` of the module that has the app, looked for where its jobs are."""
        modules = {job.module for job in self._jobs.values()}
        for module_name in sorted(modules):
            for name, found in vars(sys.modules.get(module_name, object)).items():
                if found is self:
                    return f"{module_name}:{name}"
        raise TypeError("the app has no name in a module that has jobs of it")


def _mark_of(offset: int | None, options: Mapping[str, Any]) -> int | None:
    """With a key the id may be that of an earlier job, which is done."""
    return None if options.get("key") else offset


def _ids_of(job: Job[..., Any], after: Any) -> list[object]:
    """Of handles, or ids, of jobs in the same queue."""
    is_one = isinstance(after, Handle | bytes | str) or not isinstance(after, Iterable)
    listed = [after] if is_one else list(after)
    for each in listed:
        if isinstance(each, Handle) and each.job.options.queue != job.options.queue:
            raise InvalidArgument(
                f"after: {each.job.name!r} is a job of queue {each.job.options.queue!r}; "
                f"{job.name!r} waits for jobs of its own queue, {job.options.queue!r}; give a "
                "batch a callback with when_complete instead"
            )
    return listed


def _not_a_job(reason: str) -> Kind:
    """Fails the item: no worker will ever know it."""

    def fail(_: object) -> None:
        raise ValueError(f"the contents are not those of a job: {reason}")

    return Kind("", fail, is_coroutine=False)
