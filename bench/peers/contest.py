"""The comparison: all servers run the whole time, and the peers are measured in turn."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.measure import Shape, percentile_us
from bench.peers.contender import Contender, Turn, running_contenders
from bench.peers.driver import Driver
from bench.peers.order import Order, Tally
from bench.peers.peer import Peer
from bench.peers.results import Figures
from bench.peers.usage import usage_of

CALLERS = {1: 32, 100: 8}
"""By the number of items in a call."""
SIZES = (100, 1024)
_SUSTAIN_CALLERS = 32
_SUSTAIN_ITEMS = 10
_SUSTAIN_WAITING = 1000
_PROBES = 300
"""Polls in a round."""
_DRAIN_ITEMS = 1000
_DRAIN_CALLERS = 8
_END_SECONDS = 120.0
"""Seconds that Queueber may fill, and drain, a deep queue."""


@dataclass(frozen=True, slots=True)
class Plan:
    seconds: float
    """Seconds of a short round."""
    repeat: int
    sustain_seconds: dict[int, float]
    """Seconds, by the bytes of an item."""
    deep_items: int
    deep_seconds: float
    """Seconds that a peer may fill, and drain; Queueber continues to the end."""
    probe_rounds: int


def started(
    peers: Sequence[Peer], folder: Path
) -> contextlib.AbstractContextManager[list[Contender]]:
    return running_contenders(peers, folder, Driver)


def column(work: str, shape: Shape) -> str:
    name = "add" if work == "add" else "poll+ack"
    return f"{name} {shape.items}, {shape.content_bytes} B"


# --- short rounds ---------------------------------------------------------------------------------


def run_short(contender: Contender, shape: Shape, seconds: float) -> None:
    """Add for a while, then take and acknowledge for as long, or until nothing is left."""
    queue = contender.new_name()
    for work in ("add", "take"):
        tally = contender.order(
            Order(
                work, queue, shape.content_bytes,
                items=shape.items, callers=CALLERS[shape.items], seconds=seconds,
            )
        )  # fmt: skip
        contender.add_round(column(work, shape), tally.items_per_second)


# --- producers and consumers together -------------------------------------------------------------


def run_sustained(contender: Contender, content_bytes: int, seconds: float) -> None:
    before = usage_of(contender.server.process_ids())
    tally = contender.order(
        Order(
            "sustain", contender.new_name(), content_bytes, items=_SUSTAIN_ITEMS,
            callers=_SUSTAIN_CALLERS, seconds=seconds, count=_SUSTAIN_WAITING,
        )
    )  # fmt: skip
    after = usage_of(contender.server.process_ids())
    contender.figures[f"sustained, {content_bytes} B"] = {
        "items/s": tally.items_per_second,
        "p50 ms": percentile_us(tally.samples_ns, 0.5) / 1000,
        "p99 ms": percentile_us(tally.samples_ns, 0.99) / 1000,
        "resident MB": after.resident_bytes / 1e6,
        "written B/item": (after.written_bytes - before.written_bytes) / max(1, tally.items),
    }


# --- a deep queue ---------------------------------------------------------------------------------


def run_deep(contender: Contender, plan: Plan, *, to_the_end: bool) -> None:
    """Poll when few items wait, when millions do, and after those have passed.

    Each time in turn with another queue in which few items wait: other load on disk and machine
    affects both queues, and depth only one.
    """
    deep, size = contender.new_name(), SIZES[0]
    few_items = _PROBES * plan.probe_rounds + 500
    seconds = _END_SECONDS if to_the_end else plan.deep_seconds

    def fill(queue: str, count: int) -> int:
        return contender.order(Order("fill", queue, size, seconds=seconds, count=count)).items

    def probe(*queues: str) -> list[float]:
        """The p99 of each queue's polls: the median of several rounds."""
        os.sync()  # write out earlier data now, not during the round
        rounds = []
        for _ in range(plan.probe_rounds):
            orders = [Order("probe", queue, size, count=_PROBES) for queue in queues]
            rounds.append([_p99_ms(contender.order(order)) for order in orders])
        return [median(each) for each in zip(*rounds, strict=True)]

    def probe_beside(name: str) -> None:
        few = contender.new_name()
        fill(few, few_items)
        figures[f"{name} p99 ms"], figures[f"beside {name} p99 ms"] = probe(deep, few)

    figures: Figures = {}
    fill(deep, few_items)
    (figures["empty p99 ms"],) = probe(deep)
    figures["waiting"] = fill(deep, plan.deep_items)
    probe_beside("waiting")
    figures["resident MB"] = contender.resident_mb()
    drained = contender.order(
        Order(
            "drain", deep, size,
            items=_DRAIN_ITEMS, callers=_DRAIN_CALLERS, seconds=seconds,
        )
    )  # fmt: skip
    figures["passed"] = drained.items
    fill(deep, few_items)
    probe_beside("passed")
    contender.figures["deep"] = figures


def _p99_ms(tally: Tally) -> float:
    return percentile_us(tally.samples_ns, 0.99) / 1000


# --- all of it ------------------------------------------------------------------------------------


def turns(contenders: Sequence[Contender], plan: Plan) -> Iterator[Turn]:
    """The steps in order, each with the name of its peer."""
    shapes = [Shape(items, size) for size in SIZES for items in CALLERS]
    # First, while the stores are empty: all bytes written are for these items.
    for size, seconds in plan.sustain_seconds.items():
        for each in contenders:
            yield each.peer.name, lambda c=each, b=size, s=seconds: run_sustained(c, b, s)  # type: ignore[misc]
    for _ in range(plan.repeat):
        for shape in shapes:
            for each in contenders:
                yield each.peer.name, lambda c=each, s=shape: run_short(c, s, plan.seconds)  # type: ignore[misc]
    if plan.deep_items:
        for number, each in enumerate(contenders):
            yield each.peer.name, lambda c=each, n=number: run_deep(c, plan, to_the_end=n == 0)  # type: ignore[misc]
