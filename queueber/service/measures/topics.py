"""Topics and their groups: what each of the most active has, and how it went over time.

There may be a million topics. Nothing here looks at any but those that calls used lately.
"""

from collections.abc import Callable, Iterator

from queueber.db.records.log import LogHead
from queueber.db.store.contract import Reads
from queueber.engine.topics.groups import group_info
from queueber.engine.topics.topic_state import TopicState
from queueber.engine.topics.topics import Topics
from queueber.limits import SECOND_MS
from queueber.model import GroupInfo, GroupKind, Metric, MetricFamily, Sample
from queueber.service.measures import metrics
from queueber.service.measures.metrics import NAMED_MAX, OTHER
from queueber.service.measures.points import Track
from queueber.service.measures.ranking import Ranking

TRACKED_MAX = 200
"""Topics that have a history, some 30 KiB each."""
USED_MAX = 5000
"""Topics whose uses are counted between two samples."""
KNOWN_MAX = 2 * TRACKED_MAX
"""Topics that are ranked. A reference keeps each of them in memory, about 4 KiB."""
GROUPS_MAX = 200
"""Groups whose lag is measured. It takes a read for each partition that has any."""

SERIES = ("messages_per_s", "bytes_per_s", "messages", "bytes", "lag")
PEAKS = ("lag",)

Published = tuple[int, int]
"""Messages and bytes that a topic ever got."""


class TopicMeasures:
    def __init__(self, reads: Reads, topics: Topics) -> None:
        self._reads = reads
        self._topics = topics
        self._used: dict[TopicState, int] = {}
        self._ranking: Ranking[TopicState] = Ranking()
        self._named: dict[TopicState, None] = {}
        self._published: dict[TopicState, int] = {}
        """How many messages each named topic had at the last look."""
        self._sequence = topics.sequences.last
        self._others = 0
        """Messages that came to topics while they had no sample of their own."""
        self._groups: dict[TopicState, list[GroupInfo]] = {}
        """As they were at the last sample."""
        self._tracked: dict[TopicState, None] = {}
        self._tracks: dict[TopicState, tuple[Track, Published]] = {}

    def use(self, topic: TopicState) -> None:
        """Messages came to the topic, or somebody reads it."""
        used = self._used
        count = used.get(topic)
        if count is not None:
            used[topic] = count + 1
        elif len(used) < USED_MAX:
            used[topic] = 1

    def _look(self) -> None:
        """See which topics were used since the last look, and what came to them."""
        used, self._used = self._used, {}
        for topic, count in used.items():
            self._ranking.add(topic, count)
        for topic in [each for each in self._tracked | self._named if each.record.is_deleted]:
            self._ranking.forget(topic)
        if len(self._ranking) > KNOWN_MAX:
            self._ranking.keep(self._ranking.best(KNOWN_MAX))
        came = self._topics.sequences.last - self._sequence
        self._sequence = self._topics.sequences.last
        if len(self._ranking) > NAMED_MAX:
            came -= sum(_published(each)[0] - before for each, before in self._published.items())
            self._others += max(0, came)
        self._ranking.give_places(self._named, NAMED_MAX)
        self._published = {topic: _published(topic)[0] for topic in self._named}

    # --- metrics ----------------------------------------------------------------------------------

    def families(self) -> list[MetricFamily]:
        """With the groups as they were at the last sample."""
        self._look()
        named = sorted(self._named, key=lambda topic: topic.name)
        heads = [_heads(topic) for topic in named]

        def per_topic(metric: Metric, value: Callable[[LogHead], int]) -> MetricFamily:
            return MetricFamily(
                metric,
                [
                    Sample((topic.name,), (sum(map(value, each)),))
                    for topic, each in zip(named, heads, strict=True)
                ],
            )

        published = per_topic(metrics.TOPIC_PUBLISHED, lambda head: head.next_offset)
        if self._others:
            published.samples = [*published.samples, Sample((OTHER,), (self._others,))]
        return [
            MetricFamily(metrics.TOPICS, [Sample((), (self._topics.count,))]),
            MetricFamily(metrics.PUBLISHED, [Sample((), (self._topics.sequences.last,))]),
            published,
            per_topic(metrics.TOPIC_PUBLISHED_BYTES, lambda head: head.end_position),
            per_topic(metrics.TOPIC_MESSAGES, lambda head: head.next_offset - head.first_offset),
            per_topic(metrics.TOPIC_BYTES, lambda head: head.kept_bytes),
            *self._group_families(),
        ]

    def _group_families(self) -> list[MetricFamily]:
        groups = [
            (topic.name, group)
            for topic, groups in self._groups.items()
            if topic in self._named
            for group in groups
        ]
        groups.sort(key=lambda each: (-each[1].lag, each[0], each[1].name))
        named, others = groups[:NAMED_MAX], [group for _, group in groups[NAMED_MAX:]]

        def per_group(
            metric: Metric, value: Callable[[GroupInfo], float], of_many: Callable[..., float]
        ) -> MetricFamily:
            samples = [
                Sample((topic, group.name), (value(group),))
                for topic, group in sorted(named, key=lambda each: (each[0], each[1].name))
            ]
            if others:
                samples.append(Sample((OTHER, OTHER), (of_many(map(value, others)),)))
            return MetricFamily(metric, samples)

        return [
            per_group(metrics.GROUP_LAG, lambda group: group.lag, sum),
            per_group(metrics.GROUP_LAG_SECONDS, lambda group: group.lag_ms / SECOND_MS, max),
            per_group(metrics.GROUP_DEAD, lambda group: group.dead, sum),
        ]

    # --- histories --------------------------------------------------------------------------------

    def sample(self, now_ms: int, elapsed_ms: int, points: int) -> Iterator[None]:
        """Append points to the histories; with a step for each topic, as it may read the store."""
        self._ranking.fade()
        self._look()
        self._ranking.give_places(self._tracked, TRACKED_MAX)
        for topic in [each for each in self._tracks if each not in self._tracked]:
            del self._tracks[topic]
        groups: dict[TopicState, list[GroupInfo]] = {}
        measured = 0
        for topic in list(self._tracked):
            if topic.record.is_deleted:
                continue
            groups[topic] = self._measured_groups(topic, now_ms, GROUPS_MAX - measured)
            measured += len(groups[topic])
            now = _published(topic)
            is_new = topic.record.created_at_ms >= now_ms - elapsed_ms and not topic.record.parent
            track, before = self._tracks.get(topic) or (
                Track(SERIES, PEAKS),
                (0, 0) if is_new else now,
            )
            self._tracks[topic] = (track, now)
            heads = _heads(topic)
            row = (
                (now[0] - before[0]) * SECOND_MS / elapsed_ms,
                (now[1] - before[1]) * SECOND_MS / elapsed_ms,
                sum(head.next_offset - head.first_offset for head in heads),
                sum(head.kept_bytes for head in heads),
                max((group.lag for group in groups[topic]), default=0),
            )
            for _ in range(points):
                track.append(row)
            yield
        self._groups = groups

    def _measured_groups(self, topic: TopicState, now_ms: int, count_max: int) -> list[GroupInfo]:
        """Without shared groups that nobody uses: to measure those, they would have to be read."""
        groups = [
            each
            for each in topic.groups.values()
            if each.kind is not GroupKind.SHARED or each.opened_queue is not None
        ]
        return [group_info(self._reads, topic, each, now_ms) for each in groups[:count_max]]

    def sum_up(self) -> None:
        for track, _ in self._tracks.values():
            track.sum_up()

    def forget_points(self) -> None:
        self._tracks.clear()

    def track(self, name: str) -> Track | None:
        for topic, (track, _) in self._tracks.items():
            if topic.name == name and not topic.record.is_deleted:
                return track
        return None


def _heads(topic: TopicState) -> list[LogHead]:
    return [topic.log(each).head for each in range(topic.partitions)]


def _published(topic: TopicState) -> Published:
    heads = _heads(topic)
    return sum(head.next_offset for head in heads), sum(head.end_position for head in heads)
