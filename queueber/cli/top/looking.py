"""What `queueber top` shows: the numbers of queues and topics at one moment, and their rates."""

from dataclasses import dataclass, replace
from itertools import islice

from queueber import Client
from queueber.clock import SystemClock
from queueber.errors import NotFound, PermissionDenied
from queueber.limits import SECOND_MS
from queueber.model import ServerInfo, Stats
from queueber.rates import Rates

SORTS = ("name", "ready", "leased", "delayed", "dead", "in", "done", "failed", "oldest")
"""What queues can be sorted by; all but names with the largest first."""


@dataclass(frozen=True, slots=True)
class QueueLine:
    name: str
    ready: int
    leased: int
    delayed: int
    dead: int
    in_per_s: float
    done_per_s: float
    """Completed or removed."""
    failed_per_s: float
    oldest_ms: int
    waiting_polls: int
    paused: bool


@dataclass(frozen=True, slots=True)
class TopicLine:
    name: str
    messages: int
    bytes: int
    in_per_s: float
    groups: int
    lag: int
    """Of the group that is furthest behind."""
    lag_ms: int


@dataclass(frozen=True, slots=True)
class Picture:
    address: str
    server: ServerInfo
    at_ms: int
    queues: tuple[QueueLine, ...]
    topics: tuple[TopicLine, ...]
    sort: str
    more_topics: bool = False


class Looker:
    def __init__(self, client: Client, address: str, topics_max: int, sort: int) -> None:
        self._client = client
        self._address = address
        self._topics_max = topics_max
        self._sort = sort
        self._clock = SystemClock()
        self._queue_rates = Rates()
        self._topic_rates = Rates()

    def look(self) -> Picture:
        """Ask the server."""
        server, now_ms = self._client.server(), self._clock.now_ms()
        at = now_ms / SECOND_MS
        stats = self._client.queues()
        self._queue_rates.keep({each.name for each in stats})
        names = list(islice(self._client.topics(), self._topics_max + 1))
        self._topic_rates.keep(set(names))
        topics = [self._topic(name, at) for name in names[: self._topics_max]]
        return Picture(
            self._address,
            server,
            now_ms,
            self._sorted([self._queue(each, at) for each in stats]),
            tuple(each for each in topics if each is not None),
            SORTS[self._sort],
            len(names) > self._topics_max,
        )

    def sort_by_next(self, picture: Picture) -> Picture:
        """The same picture in another order."""
        self._sort = (self._sort + 1) % len(SORTS)
        return replace(picture, queues=self._sorted(list(picture.queues)), sort=SORTS[self._sort])

    def _sorted(self, lines: list[QueueLine]) -> tuple[QueueLine, ...]:
        word = SORTS[self._sort]
        if word == "name":
            return tuple(sorted(lines, key=lambda line: line.name))
        field = {"in": "in_per_s", "done": "done_per_s", "failed": "failed_per_s"}.get(word, word)
        field = "oldest_ms" if field == "oldest" else field
        return tuple(sorted(lines, key=lambda line: (-getattr(line, field), line.name)))

    def _queue(self, stats: Stats, at: float) -> QueueLine:
        totals = (
            stats.added_total,
            stats.completed_total + stats.removed_total,
            stats.failed_total,
        )
        in_per_s, done_per_s, failed_per_s = self._queue_rates.of(stats.name, at, totals)
        return QueueLine(
            stats.name,
            stats.ready,
            stats.leased,
            stats.delayed,
            stats.dead,
            in_per_s,
            done_per_s,
            failed_per_s,
            stats.oldest_claimable_age_ms,
            stats.waiting_polls,
            stats.paused_until_ms > 0,
        )

    def _topic(self, name: str, at: float) -> TopicLine | None:
        topic = self._client.topic(name, must_exist=True)
        try:
            info, groups = topic.describe(), topic.groups()
        except (NotFound, PermissionDenied):
            return None  # deleted in this moment, or not for this caller
        ends = sum(each.next_offset for each in info.partitions)
        (in_per_s,) = self._topic_rates.of(name, at, [ends])
        return TopicLine(
            name,
            sum(each.next_offset - each.first_offset for each in info.partitions),
            sum(each.bytes for each in info.partitions),
            in_per_s,
            len(groups),
            max((each.lag for each in groups), default=0),
            max((each.lag_ms for each in groups), default=0),
        )
