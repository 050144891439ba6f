"""The comparison of streams: all servers run the whole time, and they are measured in turn."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.measure import percentile_us
from bench.peers.contender import Contender, Turn, running_contenders
from bench.peers.order import Order
from bench.peers.peer import Program
from bench.streams.driver import StreamDriver
from bench.streams.requests import KIB, MIB

APPEND_ONE = "append, 1 stream"
APPEND_MANY = "append, 32 streams"
BATCH = "JSON, 100 a call"
CREATE = "create"
READ_ONE = "bytes, 1 reader"
READ_TWO = "bytes, 2 readers"
READ_JSON = "JSON, 1 reader"
FAN_OUT = "SSE"
LATENCY = "SSE p99 ms"
WRITES = (APPEND_ONE, APPEND_MANY, BATCH, CREATE)
"""Messages a second, and streams a second."""
READS = (READ_ONE, READ_TWO, READ_JSON)
"""Bytes a second."""

CALLERS, BATCH_CALLERS, BATCH_ITEMS = 32, 8, 100
READERS = 1000
PACE = 10
"""Messages a second, each to all readers, while their times are measured."""
_FAN_OUT_APPENDERS = 4
_FAN_OUT_BYTES = 100
_FILL_BYTES = 64 * MIB
_JSON_FILL_ITEMS = 500
_WARM_UP_SECONDS = 0.5
_CREATE_SECONDS = 0.25
"""The Rust server keeps a file open for each stream, and the system lets it have 20,000."""


@dataclass(frozen=True, slots=True)
class Plan:
    seconds: float
    """Seconds of a round of one column."""
    repeat: int
    readers: int = READERS


def started(peers: Sequence[Program], folder: Path) -> AbstractContextManager[list[Contender]]:
    return running_contenders(peers, folder, StreamDriver)


def turns(contenders: Sequence[Contender], plan: Plan) -> Iterator[Turn]:
    """The steps in order, each with the name of its peer."""
    warm_up = Plan(_WARM_UP_SECONDS, 1, min(10, plan.readers))
    for each in contenders:
        yield each.peer.name, lambda c=each: _warm_up(c, warm_up)  # type: ignore[misc]
    for _ in range(plan.repeat):
        for run in (_append, _batch, _create, _fan_out, _pace):
            for each in contenders:
                yield each.peer.name, lambda c=each, r=run: r(c, plan)  # type: ignore[misc]
    # Last: these streams stay, and are in the memory of a server that keeps them there.
    for each in contenders:
        yield each.peer.name, lambda c=each: _fill(c)  # type: ignore[misc]
    for _ in range(plan.repeat):
        for each in contenders:
            yield each.peer.name, lambda c=each: _read(c, plan)  # type: ignore[misc]


def _warm_up(contender: Contender, plan: Plan) -> None:
    """Everything once without counting: some servers compile what they run often."""
    for run in (_append, _batch, _create, _fan_out):
        run(contender, plan)
    contender.rounds.clear()


@contextmanager
def _stream(contender: Contender, kind: str, count: int = 0) -> Iterator[str]:
    """A stream for one order, or several; deleted afterwards, so that the disk does not fill."""
    name = contender.new_name()
    contender.order(Order(f"create {kind}", name, 0, count=count))
    yield name
    contender.order(Order("delete", name, 0, count=count))


def _append(contender: Contender, plan: Plan) -> None:
    for column, count in ((APPEND_ONE, 0), (APPEND_MANY, CALLERS)):
        with _stream(contender, "bytes", count) as name:
            order = Order("append", name, KIB, callers=CALLERS, seconds=plan.seconds, count=count)
            contender.add_round(column, contender.order(order).items_per_second)


def _batch(contender: Contender, plan: Plan) -> None:
    with _stream(contender, "json") as name:
        order = Order(
            "append", name, KIB, items=BATCH_ITEMS, callers=BATCH_CALLERS, seconds=plan.seconds
        )
        contender.add_round(BATCH, contender.order(order).items_per_second)


def _create(contender: Contender, plan: Plan) -> None:
    order = Order("create many", contender.new_name(), 0, callers=CALLERS, seconds=_CREATE_SECONDS)
    contender.add_round(CREATE, contender.order(order).items_per_second)


def _fan_out(contender: Contender, plan: Plan) -> None:
    with _stream(contender, "text") as name:
        order = Order(
            "fan-out", name, _FAN_OUT_BYTES,
            items=_FAN_OUT_APPENDERS, callers=plan.readers, seconds=plan.seconds,
        )  # fmt: skip
        contender.add_round(FAN_OUT, contender.order(order).items_per_second)


def _pace(contender: Contender, plan: Plan) -> None:
    with _stream(contender, "text") as name:
        order = Order(
            "fan-out", name, _FAN_OUT_BYTES,
            callers=plan.readers, seconds=plan.seconds, count=PACE,
        )  # fmt: skip
        samples = contender.order(order).samples_ns
        contender.add_latency(LATENCY, percentile_us(samples, 0.99) / 1000)


def _fill(contender: Contender) -> None:
    for kind, items, size in (("bytes", 1, MIB), ("json", _JSON_FILL_ITEMS, KIB)):
        contender.order(Order(f"create {kind}", f"filled-{kind}", 0))
        count = _FILL_BYTES // (items * size)
        contender.order(Order("fill", f"filled-{kind}", size, items=items, count=count))


def _read(contender: Contender, plan: Plan) -> None:
    for column, kind, readers in (
        (READ_ONE, "bytes", 1), (READ_TWO, "bytes", 2), (READ_JSON, "json", 1),
    ):  # fmt: skip
        order = Order(
            "read", f"filled-{kind}", 0,
            callers=readers, seconds=plan.seconds, count=_FILL_BYTES,
        )  # fmt: skip
        contender.add_round(column, contender.order(order).items_per_second)
