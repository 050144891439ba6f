"""The arguments of a `Worker`, checked once. Errors name the argument."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeVar, get_args

from queueber.errors import InvalidArgument
from queueber.worker.handler import (
    DESERIALIZERS,
    SERIALIZERS,
    Deserializer,
    Handler,
    Serializer,
    SerializerName,
    is_coroutine_function,
    resolve,
)
from queueber.worker.work_item import WorkItem

LoopName = Literal["asyncio", "trio"]
LOOPS: tuple[str, ...] = get_args(LoopName)
CONCURRENCY_MAX = 10_000
PROCESSES_MAX = 1000
PREFETCH_MAX = 100_000

F = TypeVar("F", bound=Callable[..., object])

OnLeaseLost = Callable[[WorkItem], object]


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """Pickled for worker processes, so each function must be importable there, or given by name."""

    address: str
    queue: str
    handler: Handler | str
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

    def __post_init__(self) -> None:
        _check_text("address", self.address)
        _check_text("queue", self.queue)
        _check_count("concurrency", self.concurrency, 1, CONCURRENCY_MAX)
        _check_count("processes", self.processes, 0, PROCESSES_MAX)
        _check_count("prefetch", self.prefetch, 0, PREFETCH_MAX)
        if self.loop not in LOOPS:
            raise InvalidArgument(f"loop: {self.loop!r} is not one of {', '.join(LOOPS)}")
        if self.on_lease_lost is not None and not callable(self.on_lease_lost):
            raise InvalidArgument(f"on_lease_lost: {self.on_lease_lost!r} is not a function")
        # Both raise when they are wrong.
        self.find_serializer()
        self.find_deserializer()
        if not isinstance(self.handler, str):
            self.find_handler()

    def find_handler(self) -> Handler:
        """The handler itself. A handler that is given by name is imported here."""
        handler = resolve(self.handler)
        if self.loop == "trio" and not is_coroutine_function(handler):
            raise InvalidArgument(
                "loop: a plain function runs in threads and needs no loop; "
                "trio is for a handler that is 'async def'"
            )
        return handler

    def find_serializer(self) -> Serializer | None:
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


def _check_text(argument: str, given: object) -> None:
    if not isinstance(given, str):
        raise InvalidArgument(f"{argument}: {given!r} is not text; it must be str")


def _check_count(argument: str, given: object, low: int, high: int) -> None:
    if isinstance(given, bool) or not isinstance(given, int):
        raise InvalidArgument(f"{argument}: {given!r} is not a number")
    if not low <= given <= high:
        raise InvalidArgument(f"{argument}: {given} is outside {low} to {high}")
