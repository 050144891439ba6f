"""The comparison of topics: all servers run the whole time, and they are measured in turn."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from bench.measure import percentile_us
from bench.peers.contender import Contender, Turn, running_contenders
from bench.peers.contest import CALLERS, SIZES
from bench.peers.order import Order
from bench.topics.driver import TopicDriver
from bench.topics.peer import TopicPeer

PUBLISH_1, PUBLISH_100 = "publish 1", "publish 100"
READ_100, READ_1000 = "read 100", "read 1,000"
PUSH = "push"
MANY = "1,000 topics"
LAG = "beside a slow consumer"
LATENCY = "push p99 ms"
RATES = (PUBLISH_1, PUBLISH_100, READ_100, READ_1000, PUSH, MANY, LAG)
"""The columns in messages a second."""
_MANY_TOPICS = 1000
_WARM_UP_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Plan:
    seconds: float
    """Seconds of a round of one column."""
    repeat: int


def started(peers: Sequence[TopicPeer], folder: Path) -> AbstractContextManager[list[Contender]]:
    return running_contenders(peers, folder, TopicDriver)


def column(name: str, size: int) -> str:
    return f"{name}, {size} B"


def turns(contenders: Sequence[Contender], plan: Plan) -> Iterator[Turn]:
    """The steps in order, each with the name of its peer."""
    for each in contenders:
        yield each.peer.name, lambda c=each: _warm_up(c)  # type: ignore[misc]
    for _ in range(plan.repeat):
        for size in SIZES:
            for each in contenders:
                yield each.peer.name, lambda c=each, s=size: run_one(c, s, plan.seconds)  # type: ignore[misc]
    # Last, because a thousand topics may burden a server that has them.
    many = {each.peer.name: each.new_name() for each in contenders}
    for each in contenders:
        order = Order("create", many[each.peer.name], SIZES[0], count=_MANY_TOPICS)
        yield each.peer.name, lambda c=each, o=order: c.order(o)  # type: ignore[misc]
    for _ in range(plan.repeat):
        for size in SIZES:
            for each in contenders:
                yield (
                    each.peer.name,
                    lambda c=each, s=size: run_many(c, many[c.peer.name], s, plan.seconds),  # type: ignore[misc]
                )


def _warm_up(contender: Contender) -> None:
    """Publish and read without counting: some servers compile what they run often."""
    run_one(contender, SIZES[0], _WARM_UP_SECONDS / 5)
    contender.rounds.clear()
    contender.latencies_ms.clear()


# --- one topic at a time --------------------------------------------------------------------------


def run_one(contender: Contender, size: int, seconds: float) -> None:
    """One round of all columns that have one topic."""
    rate = _publish(contender, size, seconds)
    _publish_and_read(contender, size, seconds)
    _publish_beside_a_consumer(contender, size, seconds, rate)


def _publish(contender: Contender, size: int, seconds: float) -> float:
    with _Topic(contender, size) as topic:
        order = Order("publish", topic, size, callers=CALLERS[1], seconds=seconds)
        rate = contender.order(order).items_per_second
        contender.add_round(column(PUBLISH_1, size), rate)
        return rate


def _publish_and_read(contender: Contender, size: int, seconds: float) -> None:
    with _Topic(contender, size) as topic:
        published = contender.order(
            Order("publish", topic, size, items=100, callers=CALLERS[100], seconds=seconds)
        )
        contender.add_round(column(PUBLISH_100, size), published.items_per_second)
        count = published.items
        for name, order in {
            READ_100: Order("read", topic, size, items=100, seconds=seconds, count=count),
            READ_1000: Order("read", topic, size, items=1000, seconds=seconds, count=count),
            PUSH: Order("push", topic, size, seconds=seconds, count=count),
        }.items():
            contender.add_round(column(name, size), contender.order(order).items_per_second)


def _publish_beside_a_consumer(
    contender: Contender, size: int, seconds: float, rate: float
) -> None:
    with _Topic(contender, size) as topic:
        half = max(1, round(rate / 2))
        order = Order("latency", topic, size, callers=CALLERS[1], seconds=seconds, count=half)
        tally = contender.order(order)
        contender.add_latency(column(LATENCY, size), percentile_us(tally.samples_ns, 0.99) / 1000)
    with _Topic(contender, size) as topic:
        order = Order("lag", topic, size, items=100, callers=CALLERS[100], seconds=seconds)
        contender.add_round(column(LAG, size), contender.order(order).items_per_second)


class _Topic:
    """A topic for some orders, deleted afterwards so that disk and memory do not fill up."""

    def __init__(self, contender: Contender, size: int) -> None:
        self._contender = contender
        self._size = size
        self._name = contender.new_name()

    def __enter__(self) -> str:
        self._contender.order(Order("create", self._name, self._size))
        return self._name

    def __exit__(self, *_: object) -> None:
        self._contender.order(Order("delete", self._name, self._size))


# --- many topics ----------------------------------------------------------------------------------


def run_many(contender: Contender, name: str, size: int, seconds: float) -> None:
    tally = contender.order(
        Order("publish", name, size, callers=CALLERS[1], seconds=seconds, count=_MANY_TOPICS)
    )
    contender.add_round(column(MANY, size), tally.items_per_second)
