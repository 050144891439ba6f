"""Everything that a server measures, as its operators ask for it."""

from collections.abc import Callable, Iterator, Sequence

from queueber.engine.queue.queue_state import QueueState
from queueber.limits import HOUR_MS, SECOND_MS
from queueber.model import Histories, History, HistorySpan, MetricFamily, Sample
from queueber.service.measures import metrics
from queueber.service.measures.calls import CallMeasures
from queueber.service.measures.points import POINTS_IN_ONE, STEP_MS, Track
from queueber.service.measures.process import process_families
from queueber.service.measures.queues import QueueMeasures
from queueber.service.measures.topics import TopicMeasures
from queueber.service.measures.waits import Waits
from queueber.service.rights import sees
from queueber.service.session import Session
from queueber.service.shell import Shell
from queueber.service.validate.arguments import check_history_names
from queueber.version import VERSION

Source = Callable[[], Sequence[MetricFamily]]


class Measures:
    def __init__(self, shell: Shell, waits: Waits, waiting: Callable[[QueueState], int]) -> None:
        """`waiting` says how many polls wait for items of a queue."""
        self._shell = shell
        self.calls = CallMeasures()
        engine = shell.engine
        self._queues = QueueMeasures(engine.queues, waits, waiting)
        self.topics = TopicMeasures(engine.store, engine.topics)
        self.sources: list[Source] = [self.calls.families, process_families]
        """What is asked beside queues and topics; others may append theirs."""
        self._started_at_ms = shell.clock.now_ms()
        self._sampled_at_ms = self._started_at_ms
        self._summed_up_at_ms = 0
        self._points = 0
        """Since a point for the day was last made."""

    def families(self) -> list[MetricFamily]:
        """Every metric with its samples."""
        now_ms = self._shell.clock.now_ms()
        families = [
            *self._server_families(),
            *self._queues.families(now_ms),
            *self.topics.families(),
        ]
        for source in self.sources:
            families += source()
        return families

    def _server_families(self) -> list[MetricFamily]:
        shell, admission = self._shell, self._shell.admission
        commits = shell.commit_measures
        gauges = {
            metrics.STARTED: self._started_at_ms / SECOND_MS,
            metrics.CALLS_IN_FLIGHT: admission.calls,
            metrics.CALLS_MAX: admission.calls_max,
            metrics.CALLS_WAITING: shell.waiting,
            metrics.HELD_BACK: admission.held_back,
        }
        histograms = (
            {}
            if commits is None
            else {
                metrics.COMMIT_CALLS: commits.calls,
                metrics.COMMIT_ITEMS: commits.items,
                metrics.SYNC_DURATION: commits.seconds,
            }
        )
        return [
            MetricFamily(metrics.UP, [Sample((VERSION,), (1,))]),
            *(MetricFamily(metric, [Sample((), (value,))]) for metric, value in gauges.items()),
            *(
                MetricFamily(metric, [Sample((), observed.values)])
                for metric, observed in histograms.items()
            ),
        ]

    # --- histories --------------------------------------------------------------------------------

    def sample(self) -> Iterator[None]:
        """Append the points of now to the histories. Other work may be done between two steps."""
        now_ms = self._shell.clock.now_ms()
        elapsed_ms = max(1, now_ms - self._sampled_at_ms)
        self._sampled_at_ms = now_ms
        if elapsed_ms > HOUR_MS:
            # The machine slept. What was before would seem to have been just now.
            self._queues.forget_points()
            self.topics.forget_points()
            elapsed_ms = STEP_MS
        # If the last sample was late or left out, the points in between are as this one.
        points = max(1, round(elapsed_ms / STEP_MS))
        yield from self._queues.sample(now_ms, elapsed_ms, points)
        yield from self.topics.sample(now_ms, elapsed_ms, points)
        self._points += points
        while self._points >= POINTS_IN_ONE:
            self._points -= POINTS_IN_ONE
            self._summed_up_at_ms = now_ms
            self._queues.sum_up()
            self.topics.sum_up()

    def histories(
        self,
        queues: Sequence[str],
        topics: Sequence[str],
        span: HistorySpan,
        points: int,
        session: Session,
    ) -> Histories:
        """The last points of each (0: all); none of one that the server does not track, or that the
        caller may not see."""
        check_history_names("queues", queues)
        check_history_names("topics", topics)
        end_ms = self._sampled_at_ms if span is HistorySpan.HOUR else self._summed_up_at_ms

        def history(kind: str, name: str, find: Callable[[str], Track | None]) -> History:
            is_seen = sees(session, kind)
            track = find(name) if is_seen is None or is_seen(name) else None
            return History() if track is None else track.history(span, points, end_ms)

        return Histories(
            {name: history("queue", name, self._queues.track) for name in queues},
            {name: history("topic", name, self.topics.track) for name in topics},
        )
