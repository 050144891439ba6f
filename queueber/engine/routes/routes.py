"""Routes: which queue's changes go to which topics.

All of them are in memory, for there are few queues; no topic is read for it. The record of a topic
counts its routes, so what a topic with sources must not do is refused where it is done (I20).
"""

from collections.abc import Iterable
from typing import Any

from queueber.db.families import Family
from queueber.db.records.routes import (
    RouteRecord,
    decode_route,
    encode_route,
    route_key,
    split_route_key,
)
from queueber.db.store.contract import Store
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.loads.loads import AllLoads
from queueber.engine.queue.queue_state import QueueState, unreadable_queue
from queueber.engine.queue.queues import HIGHEST_PREFIX, Queues
from queueber.engine.routes.circles import does_lead_to
from queueber.engine.routes.events import EventLog
from queueber.engine.routes.queue_routes import QueueRoutes
from queueber.engine.routes.route import Route
from queueber.engine.topics.topic_state import TopicState
from queueber.engine.topics.topics import Topics
from queueber.errors import AlreadyExists, FailedPrecondition, ResourceExhausted
from queueber.ids import QueueId
from queueber.limits import ROUTES_OF_QUEUE_MAX, ROUTES_OF_TOPIC_MAX
from queueber.model import On, Source

_Place = tuple[QueueId, On, QueueId]
"""Queue, kind of change and topic: there is one route at most for each."""


class Routes:
    """All routes of a store."""

    def __init__(self, queues: Queues, topics: Topics, loads: AllLoads) -> None:
        self._queues = queues
        self._topics = topics
        self._loads = loads
        self._routes: dict[_Place, Route] = {}
        self.log = EventLog(topics)
        topics.drop_sources = self._topic_deleted
        topics.check_bridge = self._check_bridge

    def read(self, store: Store) -> None:
        """Take the routes of the store into memory."""
        of_queues: dict[QueueId, list[Route]] = {}
        for key, value in store.walk(Family.ROUTES, b"", HIGHEST_PREFIX * 3):
            queue_id = QueueId(int.from_bytes(key[:4]))
            try:
                place = split_route_key(key)
                route = self._routes[place] = Route(*place, decode_route(value))
            except Exception as error:
                raise unreadable_queue(queue_id) from error
            of_queues.setdefault(queue_id, []).append(route)
        for queue_id, routes in of_queues.items():
            queue = self._queues.by_id.get(queue_id)
            if queue is None:
                raise unreadable_queue(queue_id)
            self._tell(queue, routes)

    # --- asking -----------------------------------------------------------------------------------

    def sources_of(self, topic: TopicState) -> list[Source]:
        """Those of a topic, in order."""
        if not topic.record.sources:
            return []
        found = [
            Source(self._queues.by_id[each.queue_id].name, each.on, *each.record)
            for each in self._of_topic(topic.queue_id)
        ]
        order = list(On)
        return sorted(found, key=lambda each: (each.queue, order.index(each.on)))

    def _of_topic(self, topic_id: QueueId) -> list[Route]:
        return [each for each in self._routes.values() if each.topic_id == topic_id]

    def _of_queue(self, queue_id: QueueId) -> list[Route]:
        return [each for each in self._routes.values() if each.queue_id == queue_id]

    # --- changing ---------------------------------------------------------------------------------

    def add(self, tx: Transaction[Any], topic: TopicState, source: Source) -> bool:
        """Have changes of a queue published to the topic, from now on. False if they are already,
        in the same way."""
        queue = self._queues.get(source.queue)
        record = RouteRecord(source.where, source.partition_by, source.payload)
        place = queue.queue_id, source.on, topic.queue_id
        existing = self._routes.get(place)
        if existing is not None:
            if existing.record != record:
                raise AlreadyExists(
                    f"topic {topic.name!r} has the source {source.queue!r} on {source.on} with "
                    "another filter, partition or payload; drop it first"
                )
            return False
        route = Route(*place, record)
        route.check()
        self._check(tx, topic, queue, source.on)
        tx.batch.put(Family.ROUTES, route_key(*place), encode_route(record))
        topic.change(tx, sources=topic.record_in(tx).sources + 1)
        tx.after_write(self._added, place, route, queue)
        return True

    def drop(self, tx: Transaction[Any], topic: TopicState, queue: str, on: On | None) -> int:
        """Publish changes of the queue no more; None: of all kinds. How many routes went."""
        known = self._queues.by_name.get(queue)
        number = None if known is None else known.queue_id
        places = [
            place
            for place in self._routes
            if place[0] == number and place[2] == topic.queue_id and on in (None, place[1])
        ]
        if places:
            topic.change(tx, sources=topic.record_in(tx).sources - len(places))
            self._drop(tx, places)
        return len(places)

    def _drop(self, tx: Transaction[Any], places: Iterable[_Place]) -> None:
        for place in places:
            tx.batch.delete(Family.ROUTES, route_key(*place))
        tx.after_write(self._dropped, list(places))

    def _topic_deleted(self, tx: Transaction[Any], topic: TopicState) -> None:
        self._drop(tx, [place for place in self._routes if place[2] == topic.queue_id])
        topic.change(tx, sources=0)

    def _queue_deleted(self, tx: Transaction[Any], queue: QueueState) -> None:
        places = [place for place in self._routes if place[0] == queue.queue_id]
        for _, _, topic_id in places:
            topic = self._topics.load(topic_id)
            if topic is not None:
                topic.change(tx, sources=topic.record_in(tx).sources - 1)
        self._drop(tx, places)

    def _added(self, place: _Place, route: Route, queue: QueueState) -> None:
        self._routes[place] = route
        self._follow(queue)

    def _dropped(self, places: list[_Place]) -> None:
        for place in places:
            del self._routes[place]
        for queue_id in {queue_id for queue_id, _, _ in places}:
            queue = self._queues.by_id.get(queue_id)
            if queue is not None:
                self._follow(queue)

    def _follow(self, queue: QueueState) -> None:
        """The queue tells its changes to whoever is left to want them."""
        self._tell(queue, self._of_queue(queue.queue_id))

    def _tell(self, queue: QueueState, routes: list[Route]) -> None:
        queue.changes = (
            QueueRoutes(queue, routes, self.log, self._queue_deleted) if routes else None
        )

    # --- what may not be --------------------------------------------------------------------------

    def _check(self, tx: Transaction[Any], topic: TopicState, queue: QueueState, on: On) -> None:
        """Refuse a source whose events the topic could refuse, or that nobody could publish."""
        record, settings = topic.record_in(tx), topic.record_in(tx).settings
        if record.is_closed:
            raise _unfit(topic, "is closed, and takes no more messages")
        if settings.refuses_when_full:
            raise _unfit(topic, "refuses messages when it is full, and would refuse the changes")
        if settings.schema_version:
            raise _unfit(topic, "has a schema, which events of a queue are not checked against")
        if record.sources >= ROUTES_OF_TOPIC_MAX:
            raise ResourceExhausted(
                f"topic {topic.name!r} has {record.sources} sources; the limit is "
                f"{ROUTES_OF_TOPIC_MAX}"
            )
        if len(self._of_queue(queue.queue_id)) >= ROUTES_OF_QUEUE_MAX:
            raise ResourceExhausted(
                f"queue {queue.name!r} is the source of {ROUTES_OF_QUEUE_MAX} routes, the limit"
            )
        if on is On.INSERT:
            if len(self._loads.of(queue)):
                raise FailedPrecondition(
                    f"a load into queue {queue.name!r} is under way, whose items would have no "
                    "events; commit or abort it first"
                )
            if does_lead_to(self._topics, self._inserts_of, topic.queue_id, queue.queue_id):
                raise _circle(topic, queue)

    def _check_bridge(self, topic: TopicState, queue: QueueState) -> None:
        for topic_id in self._inserts_of(queue.queue_id):
            if topic_id == topic.queue_id or self._is_filled_by(topic_id, topic.queue_id):
                raise _circle(topic, queue)

    def _is_filled_by(self, start: QueueId, topic_id: QueueId) -> bool:
        """Whether messages of one topic come to another."""
        return any(
            does_lead_to(self._topics, self._inserts_of, start, each.queue_id)
            for each in self._of_topic(topic_id)
            if each.on is On.INSERT
        )

    def _inserts_of(self, queue_id: QueueId) -> list[QueueId]:
        return [each.topic_id for each in self._of_queue(queue_id) if each.on is On.INSERT]


def _unfit(topic: TopicState, why: str) -> FailedPrecondition:
    return FailedPrecondition(f"topic {topic.name!r} {why}; it can have no sources")


def _circle(topic: TopicState, queue: QueueState) -> FailedPrecondition:
    return FailedPrecondition(
        f"messages of topic {topic.name!r} are added to queue {queue.name!r}, and items that are "
        "added to it would be published to the topic again, without end"
    )
