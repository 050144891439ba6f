"""Routes: add and drop the sources of a topic, and wake those who wait for their events."""

from collections.abc import Awaitable
from typing import Any

from queueber.auth.roles import Action
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.routes.events import Places
from queueber.model import On, Source
from queueber.service.durable_ends import DurableEnds
from queueber.service.rights import check_right
from queueber.service.shell import Shell
from queueber.service.topic_handle import TopicHandle
from queueber.service.topics import Topics
from queueber.service.validate.arguments import check_queue_name
from queueber.service.validate.routes import check_source


class Routes:
    def __init__(self, shell: Shell, topics: Topics, ends: DurableEnds) -> None:
        self._shell = shell
        self._topics = topics
        self._ends = ends
        log = shell.engine.routes.log
        log.payload_bytes_max = shell.limits.payload_bytes_max
        log.when_written = self._events_written

    def add_source(self, topic: TopicHandle, source: Source) -> Awaitable[bool]:
        """Publish changes of a queue to the topic; False if that is so already."""
        check_queue_name(source.queue, "queue")
        check_source(source)
        check_right(topic.session, Action.READ, "queue", source.queue)
        shell, state = self._shell, self._topics.alive(topic)
        routes = shell.engine.routes
        queue = shell.engine.queues.get(source.queue)
        shell.write_gathered(queue)  # what came before has no event

        def add(tx: Transaction[Any]) -> bool:
            return routes.add(tx, state, source)

        facts: dict[str, object] = {"source": source}
        return self._topics.write(state, topic.session, add, "topic_source_added", facts)

    def drop_source(self, topic: TopicHandle, queue: str, on: On | None) -> Awaitable[int]:
        """Publish changes of the queue no more, or only those of other kinds; how many sources
        went."""
        check_queue_name(queue, "queue")
        shell, state = self._shell, self._topics.alive(topic)
        known = shell.engine.queues.by_name.get(queue)
        if known is not None:
            shell.write_gathered(known)  # what came before has its events
        routes = shell.engine.routes

        def drop(tx: Transaction[Any]) -> int:
            return routes.drop(tx, state, queue, on)

        facts: dict[str, object] = {"queue": queue, "on": on}
        return self._topics.write(state, topic.session, drop, "topic_source_dropped", facts)

    def _events_written(self, places: Places) -> None:
        """Called by the engine in the middle of a write: whoever waits is woken in another turn."""
        shell = self._shell
        if shell.waits_for_disk:
            self._ends.written(places)
        else:
            shell.loop.call_soon(self._ends.written, places)
        shell.loop.call_soon(self._wake_sweeper)

    def _wake_sweeper(self) -> None:
        """Limits of the topic, and bridges that it has, may be due."""
        self._shell.wake_sweeper_for(self._shell.engine.agenda.next_ms())
