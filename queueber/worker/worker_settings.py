"""The arguments of a `Worker`, checked once. Errors name the argument.

The handler is a function, or the name of one as in `package.module:function`.
"""

import functools
import importlib
import inspect
import json
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, get_args

from queueber.client.arguments.topic_names import to_group_name, to_topic_name
from queueber.client.transport.identity import Token
from queueber.errors import InvalidArgument
from queueber.tls import TlsOptions
from queueber.worker.handlers.kinds import Kinds, NoHandler
from queueber.worker.handlers.middleware import Middleware
from queueber.worker.handlers.work_item import Deserializer, Serializer, WorkItem

Handler = Callable[[WorkItem], object]
OnLeaseLost = Callable[[WorkItem], object]
SerializerName = Literal["json"]
LoopName = Literal["asyncio", "trio"]
LOOPS: tuple[str, ...] = get_args(LoopName)
Until = Literal["empty", "done"]
UNTILS: tuple[str, ...] = get_args(Until)
CONCURRENCY_MAX = 10_000
PROCESSES_MAX = 1000
PREFETCH_MAX = 100_000
QUEUES_MAX = 100
"""Queues of one worker: each has polls of its own."""
WEIGHT_MAX = 1000

F = TypeVar("F", bound=Callable[..., object])


def _to_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _drop(_: Any) -> bytes:
    return b""


# Pickle is not among them: whoever may add an item could run code in the worker.
SERIALIZERS: dict[str, Serializer] = {"json": _to_json}
DESERIALIZERS: dict[str, Deserializer] = {"json": json.loads}


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """Pickled for worker processes, so each function must be importable there, or given by name."""

    address: str
    queue: str
    handler: Handler | Kinds | str
    concurrency: int
    processes: int
    prefetch: int
    """Items that wait in the pool beside those that handlers have."""
    lease_seconds: float
    shutdown_seconds: float
    connect_seconds: float
    loop: LoopName
    serializer: Serializer | SerializerName | None
    deserializer: Deserializer | str | None
    on_lease_lost: OnLeaseLost | None
    middleware: tuple[Middleware | str, ...] = ()
    """Around the handler, the outermost first; by name: a class, or an object of one."""
    keeps_results: bool = True
    """What handlers return is stored."""
    timeout_seconds: float | None = None
    """How long a handler may run; None: without end."""
    is_replaceable: bool = False
    """The pool is in a worker process, which is replaced if a handler cannot be ended."""
    until: Until | None = None
    """The run ends when no item is ready, or when none is left that could become ready."""
    must_exist: bool = False
    """A queue that is missing at the start is not created."""
    tls: TlsOptions | None = None
    topic: str | None = None
    """Instead of the queue: its messages are leased to the shared group of that name."""
    group: str = ""
    weights: Mapping[str, int] = field(default_factory=dict)
    """Several queues in place of the one, each with its weight; empty: the one."""
    token: Token | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        _check_text("address", self.address)
        _check_text("queue", self.queue)
        _check_topic(self.topic, self.group)
        _check_weights(self.weights)
        _check_count("concurrency", self.concurrency, 1, CONCURRENCY_MAX)
        _check_count("processes", self.processes, 0, PROCESSES_MAX)
        _check_count("prefetch", self.prefetch, 0, PREFETCH_MAX)
        if self.loop not in LOOPS:
            raise InvalidArgument(f"loop: {self.loop!r} is not one of {', '.join(LOOPS)}")
        if self.until is not None and self.until not in UNTILS:
            raise InvalidArgument(f"until: {self.until!r} is not one of {', '.join(UNTILS)}")
        if self.on_lease_lost is not None and not callable(self.on_lease_lost):
            raise InvalidArgument(f"on_lease_lost: {self.on_lease_lost!r} is not a function")
        if not isinstance(self.keeps_results, bool):
            raise InvalidArgument(f"results: {self.keeps_results!r} is not True or False")
        if self.serializer is not None and not self.keeps_results:
            raise InvalidArgument("serializer: there is nothing to serialize with results=False")
        for each in self.middleware:
            if not isinstance(each, str):
                _to_middleware(each)
        # Both raise when they are wrong.
        self.find_serializer()
        self.find_deserializer()
        if not isinstance(self.handler, str):
            self.find_handler()

    @property
    def source(self) -> str:
        """What the items are of, for logs."""
        if self.weights:
            return ", ".join(self.weights)
        return self.queue if self.topic is None else f"{self.topic}/{self.group}"

    @property
    def queue_weights(self) -> Mapping[str, int]:
        """Every queue that is polled, with its weight. A topic's group counts as one."""
        return self.weights or {self.source: 1}

    def find_handler(self) -> Handler | Kinds:
        """The handler itself. A handler that is given by name is imported here."""
        handler = resolve(self.handler)
        if isinstance(handler, Kinds):
            self._check_kinds(handler)
        elif self.loop == "trio" and not is_coroutine_function(handler):
            raise InvalidArgument(
                "loop: a plain function runs in threads and needs no loop; "
                "trio is for a handler that is 'async def'"
            )
        return handler

    def _check_kinds(self, kinds: Kinds) -> None:
        if not kinds.all_kinds():
            raise InvalidArgument("handler: the app has no jobs; declare them before it works")
        if self.topic is not None:
            raise InvalidArgument("topic: jobs are items of queues; a topic has none")
        if self.serializer is not None or self.deserializer is not None:
            raise InvalidArgument("serializer: an app has its own; the types of a job say how")

    def find_middleware(self) -> list[Middleware]:
        """What was given by name is imported here."""
        return [_to_middleware(each) for each in self.middleware]

    def find_serializer(self) -> Serializer | None:
        if not self.keeps_results:
            return _drop
        return _named("serializer", self.serializer, SERIALIZERS)

    def find_deserializer(self) -> Deserializer | None:
        return _named("deserializer", self.deserializer, DESERIALIZERS)


def _named(argument: str, given: F | str | None, known: dict[str, F]) -> F | None:
    if isinstance(given, str):
        if given not in known:
            raise InvalidArgument(f"{argument}: {given!r} is not one of {', '.join(known)}")
        return known[given]
    if given is not None and not callable(given):
        raise InvalidArgument(f"{argument}: {given!r} is not a function")
    return given


def _to_middleware(given: object) -> Middleware:
    found = load(given, "middleware") if isinstance(given, str) else given
    if isinstance(found, type) and issubclass(found, Middleware):
        found = found()
    if not isinstance(found, Middleware):
        raise InvalidArgument(f"middleware: {given!r} is not a queueber.Middleware")
    return found


def _check_text(argument: str, given: object) -> None:
    if not isinstance(given, str):
        raise InvalidArgument(f"{argument}: {given!r} is not text; it must be str")


def _check_topic(topic: object, group: object) -> None:
    if topic is None and group:
        raise InvalidArgument("group: it is that of a topic; give topic=, too")
    if topic is not None:
        to_topic_name(topic)
        to_group_name(group)


def to_weights(queues: Mapping[str, int] | Sequence[str] | None) -> Mapping[str, int]:
    """Names without weights have equal ones."""
    if queues is None:
        return {}
    if queues in ("", (), [], {}):
        raise InvalidArgument("queues: there are none; name at least one")
    if isinstance(queues, str):
        raise InvalidArgument(f"queues: {queues!r} is one name; give a list of names, or queue=")
    if isinstance(queues, Mapping):
        return dict(queues)
    names = to_listed("queues", queues, "names")
    for name in names:
        _check_text("queues", name)
    return dict.fromkeys(names, 1)


def to_listed(argument: str, given: Any, what: str) -> tuple[Any, ...]:
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise InvalidArgument(f"{argument}: {given!r} is no list of {what}")
    return tuple(given)


def _check_weights(weights: object) -> None:
    if not isinstance(weights, Mapping):
        raise InvalidArgument(f"queues: {weights!r} is not a mapping of names to weights")
    if len(weights) > QUEUES_MAX:
        raise InvalidArgument(f"queues: {len(weights)} are too many; the limit is {QUEUES_MAX}")
    for name, weight in weights.items():
        _check_text("queues", name)
        _check_count(f"queues: the weight of {name!r}", weight, 1, WEIGHT_MAX)


def _check_count(argument: str, given: object, low: int, high: int) -> None:
    if isinstance(given, bool) or not isinstance(given, int):
        raise InvalidArgument(f"{argument}: {given!r} is not a number")
    if not low <= given <= high:
        raise InvalidArgument(f"{argument}: {given} is outside {low} to {high}")


def load(reference: str, argument: str = "handler") -> Any:
    """Import what `package.module:name` names; `InvalidArgument` says why that is impossible."""
    module_name, colon, path = reference.partition(":")
    if not colon or not module_name or not path:
        raise InvalidArgument(
            f"{argument}: {reference!r} does not name a function; "
            "write it as package.module:function"
        )
    try:
        found: Any = importlib.import_module(module_name)
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and _is_part_of(error.name, module_name):
            raise InvalidArgument(
                f"{argument}: there is no module {error.name!r}; it is looked for in the current "
                "directory and on PYTHONPATH"
            ) from None
        raise InvalidArgument(
            f"{argument}: {module_name} cannot be imported: {type(error).__name__}: {error}"
            f"{_where(error)}"
        ) from error
    for name in path.split("."):
        if not hasattr(found, name):
            raise InvalidArgument(f"{argument}: {module_name} has no {path!r}")
        found = getattr(found, name)
    return found


def _is_part_of(missing: str | None, module_name: str) -> bool:
    """Whether the module itself is missing, rather than something that it imports."""
    return missing is not None and f"{module_name}.".startswith(f"{missing}.")


def _where(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""


def resolve(handler: object) -> Handler | Kinds:
    """The handler itself, imported if it was given by name."""
    found: Any = load(handler) if isinstance(handler, str) else handler
    if isinstance(found, Kinds):
        if isinstance(handler, str):
            found.reference = handler
        return found
    shown = handler if isinstance(handler, str) else repr(handler)
    if isinstance(found, NoHandler):
        raise InvalidArgument(f"handler: {shown} is a job; give its app, which calls it")
    if not callable(found):
        raise InvalidArgument(f"handler: {shown} is {type(found).__name__}, not a function")
    if is_generator_function(found):
        raise InvalidArgument(f"handler: {shown} is a generator; a call of it runs nothing")
    function: Handler = found
    return function


def is_coroutine_function(handler: object) -> bool:
    """Also true for a partial, and for an object whose `__call__` is a coroutine function."""
    return inspect.iscoroutinefunction(function_of(handler))


def is_generator_function(handler: object) -> bool:
    function = function_of(handler)
    return inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)


def function_of(handler: Any) -> Any:
    """The function that a partial is of, or that is called with an object."""
    while isinstance(handler, functools.partial):
        handler = handler.func
    if inspect.isroutine(handler) or inspect.isclass(handler):
        return handler
    return getattr(handler, "__call__", handler)  # noqa: B004  the method itself is asked for
