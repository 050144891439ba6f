"""How far the partitions of topics are durable.

Messages are written before they are synced. Nobody may read them earlier: a reader would have seen
what a crash of the machine takes back. So reads end where a partition is durable, and whoever waits
for messages is woken once they are.
"""

from collections import deque
from collections.abc import Callable, Iterable

from queueber.engine.topics.topic_state import TopicState
from queueber.service.loop import Future
from queueber.service.shell import Shell

Place = tuple[TopicState, int]
"""A partition of a topic."""


class DurableEnds:
    def __init__(self, shell: Shell, came: Callable[[TopicState], None]) -> None:
        """`came` is called when messages of a topic have become durable."""
        self._shell = shell
        self._came = came
        self._starts: dict[Place, deque[int]] = {}
        """For each partition with messages that are not durable the offset of the first of each
        write."""

    def written(self, places: Iterable[tuple[TopicState, int, int]]) -> None:
        """Messages were written: topic, partition, and the offset of the first of them.

        Call it before the callers of the write are answered: they may read what they wrote.
        """
        places = list(places)
        topics = dict.fromkeys(topic for topic, _, _ in places)
        if not self._shell.waits_for_disk:
            self._tell(topics)
            return
        for topic, partition, offset in places:
            self._starts.setdefault((topic, partition), deque()).append(offset)

        def synced(future: Future) -> None:
            if future.cancelled() or future.exception() is not None:
                return  # the server stops, and nobody reads what may be lost
            for topic, partition, _ in places:
                starts = self._starts[topic, partition]
                starts.popleft()
                if not starts:
                    del self._starts[topic, partition]
            self._tell(topics)

        self._shell.durable_future().add_done_callback(synced)

    def _tell(self, topics: Iterable[TopicState]) -> None:
        for topic in topics:
            self._came(topic)

    def end(self, topic: TopicState, partition: int) -> int | None:
        """Where the durable messages end; None if all are."""
        starts = self._starts.get((topic, partition))
        return starts[0] if starts else None
