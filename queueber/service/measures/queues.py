"""Queues: what each of the most active has, and all others together; and how it went over time."""

from collections.abc import Callable, Iterator
from operator import attrgetter

from queueber.db.records.queues import Counters
from queueber.engine.queue.queue_state import QueueState
from queueber.engine.queue.queues import Queues, oldest_claimable_age_ms
from queueber.limits import SECOND_MS
from queueber.model import Metric, MetricFamily, Sample
from queueber.service.measures import metrics
from queueber.service.measures.metrics import NAMED_MAX, OTHER
from queueber.service.measures.points import Track
from queueber.service.measures.ranking import Ranking
from queueber.service.measures.waits import Waits

TRACKED_MAX = 200
"""Queues that have a history, some 60 KiB each."""

STATES = ("ready", "delayed", "leased", "dead")
OPERATIONS = {
    "added": "added_total",
    "polled": "polled_total",
    "completed": "completed_total",
    "removed": "removed_total",
    "failed": "failed_total",
    "released": "released_total",
    "extended": "extended_total",
    "expired": "expired_total",
    "died": "died_total",
    "redriven": "redriven_total",
    "cancelled": "cancelled_total",
    "duplicate": "duplicates_total",
    "dropped": "dead_dropped_total",
    "unclaimed": "unclaimed_total",
}
"""The counter of each operation."""
_totals: Callable[[Counters], tuple[int, ...]] = attrgetter(*OPERATIONS.values())
_states: Callable[[Counters], tuple[int, ...]] = attrgetter(*STATES)

SERIES = (
    *STATES,
    "added_per_s",
    "polled_per_s",
    "completed_per_s",
    "failed_per_s",
    "expired_per_s",
    "oldest_age_ms",
    "wait_ms",
)
PEAKS = ("oldest_age_ms", "wait_ms")
_RATED: Callable[[Counters], tuple[int, ...]] = attrgetter(
    "added_total", "polled_total", "completed_total", "removed_total", "failed_total",
    "expired_total",
)  # fmt: skip


class QueueMeasures:
    """Whatever is measured of queues. Counters are replaced, never changed: a queue whose counters
    are the same object as at the last look has done nothing since."""

    def __init__(self, queues: Queues, waits: Waits, waiting: Callable[[QueueState], int]) -> None:
        """`waiting` says how many polls wait for items of a queue."""
        self._queues = queues
        self._waits = waits
        self._waiting = waiting
        self._ranking: Ranking[QueueState] = Ranking()
        self._named: dict[QueueState, None] = {}
        self._seen: dict[QueueState, Counters] = {}
        self._others = [0] * len(OPERATIONS)
        """What queues did while they had no sample of their own. It never falls, whoever is named
        and whoever is deleted."""
        self._tracked: dict[QueueState, None] = {}
        self._tracks: dict[QueueState, tuple[Track, Counters]] = {}
        self._waited: dict[QueueState, float] = {}

    def _look(self) -> None:
        """See what was done since the last look, and who has a sample of its own from now on."""
        live, done = self._queues.by_name, {}
        for queue in live.values():
            counters, before = queue.counters, self._seen.get(queue)
            if counters is before:
                continue
            self._seen[queue] = counters
            totals = _totals(counters)
            if before is None:
                done[queue] = totals
                # Idle queues are worth a place, too, those with items first.
                self._ranking.add(queue, 1 + sum(_states(counters)))
            else:
                done[queue] = _minus(totals, _totals(before))
                self._ranking.add(queue, sum(done[queue]))
        if len(self._seen) > len(live):
            alive = set(live.values())
            self._seen = {queue: self._seen[queue] for queue in alive}
            self._ranking.keep(alive)
        self._ranking.give_places(self._named, NAMED_MAX)
        for queue in done.keys() - self._named.keys():
            self._others = [a + b for a, b in zip(self._others, done[queue], strict=True)]

    # --- metrics ----------------------------------------------------------------------------------

    def families(self, now_ms: int) -> list[MetricFamily]:
        self._look()
        named = sorted(self._named, key=lambda queue: queue.name)
        others = [each for each in self._queues.by_name.values() if each not in self._named]
        items = [
            Sample((queue.name, state), (count,))
            for queue in named
            for state, count in zip(STATES, _states(queue.counters), strict=True)
        ]
        done = [
            Sample((queue.name, operation), (count,))
            for queue in named
            for operation, count in zip(OPERATIONS, _totals(queue.counters), strict=True)
        ]
        if others or any(self._others):
            rest = [sum(each) for each in zip(*[_states(q.counters) for q in others], strict=True)]
            items += _samples_of_others(STATES, rest or [0] * len(STATES))
            done += _samples_of_others(tuple(OPERATIONS), self._others)

        def gauge(metric: Metric, value: Callable[[QueueState], float]) -> MetricFamily:
            return MetricFamily(metric, [Sample((each.name,), (value(each),)) for each in named])

        return [
            MetricFamily(metrics.QUEUES, [Sample((), (len(self._queues.by_name),))]),
            MetricFamily(metrics.QUEUE_ITEMS, items),
            MetricFamily(metrics.QUEUE_OPERATIONS, done),
            gauge(metrics.QUEUE_BYTES, lambda q: q.counters.contents_bytes),
            gauge(metrics.QUEUE_LEASES, lambda q: q.counters.leases),
            gauge(metrics.QUEUE_OLDEST, lambda q: oldest_claimable_age_ms(q, now_ms) / SECOND_MS),
            gauge(metrics.QUEUE_WAITED, lambda q: self._waited.get(q, 0.0) / SECOND_MS),
            gauge(metrics.QUEUE_WAITING_POLLS, self._waiting),
            gauge(metrics.QUEUE_PAUSED, lambda q: q.is_paused(now_ms)),
            gauge(
                metrics.QUEUE_RESULTS,
                lambda q: q.results.head.next_offset - q.results.head.first_offset,
            ),
            gauge(metrics.QUEUE_RESULT_BYTES, lambda q: q.results.head.kept_bytes),
            MetricFamily(metrics.ITEM_WAIT, [Sample((), self._waits.seconds.values)]),
        ]

    # --- histories --------------------------------------------------------------------------------

    def sample(self, now_ms: int, elapsed_ms: int, points: int) -> Iterator[None]:
        """Append points to the histories; with a step for each queue, as it may read the store."""
        self._ranking.fade()
        self._look()
        self._waited = self._waits.take()
        self._ranking.give_places(self._tracked, TRACKED_MAX)
        for queue in [each for each in self._tracks if each not in self._tracked]:
            del self._tracks[queue]
        for queue in list(self._tracked):
            is_new = queue.created_at_ms >= now_ms - elapsed_ms
            track, before = self._tracks.get(queue) or (
                Track(SERIES, PEAKS),
                Counters() if is_new else queue.counters,
            )
            row = self._row(queue, before, now_ms, elapsed_ms)
            self._tracks[queue] = (track, queue.counters)
            for _ in range(points):
                track.append(row)
            yield

    def _row(
        self, queue: QueueState, before: Counters, now_ms: int, elapsed_ms: int
    ) -> tuple[float, ...]:
        counters = queue.counters
        done = _minus(_RATED(counters), _RATED(before))
        added, polled, completed, removed, failed, expired = (
            each * SECOND_MS / elapsed_ms for each in done
        )
        return (
            *_states(counters),
            added,
            polled,
            completed + removed,
            failed,
            expired,
            0 if queue.is_deleted else oldest_claimable_age_ms(queue, now_ms),
            self._waited.get(queue, 0.0),
        )

    def sum_up(self) -> None:
        for track, _ in self._tracks.values():
            track.sum_up()

    def forget_points(self) -> None:
        self._tracks.clear()

    def track(self, name: str) -> Track | None:
        queue = self._queues.by_name.get(name)
        found = None if queue is None else self._tracks.get(queue)
        return None if found is None else found[0]


def _minus(now: tuple[int, ...], before: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(a - b for a, b in zip(now, before, strict=True))


def _samples_of_others(kinds: tuple[str, ...], values: list[int]) -> list[Sample]:
    return [Sample((OTHER, kind), (value,)) for kind, value in zip(kinds, values, strict=True)]
