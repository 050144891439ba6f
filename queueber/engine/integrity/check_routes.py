"""The check of routes: they agree with their queues and topics; and their repair."""

from collections import Counter
from collections.abc import Iterator

from queueber.db.families import Family
from queueber.db.records.keys import PREFIX_BYTES, queue_prefix, split_queue_prefix
from queueber.db.records.loads import LOADS_END
from queueber.db.records.queues import decode_queue
from queueber.db.records.routes import decode_route, split_route_key
from queueber.db.records.topics import TopicRecord, decode_topic
from queueber.db.store.contract import Store
from queueber.engine.integrity.owners import LAST_KEY
from queueber.engine.integrity.queue_entries import Violation, readable
from queueber.engine.routes.route import Route
from queueber.errors import QueueberError
from queueber.ids import QueueId
from queueber.model import On


def check_routes(store: Store) -> Iterator[Violation]:
    """I20. The memory that this takes grows with the number of routes."""
    found: Counter[QueueId] = Counter()
    for key, value in store.walk(Family.ROUTES, b"", LAST_KEY):
        route = readable(_read, key, value)
        queue = _queue_name(store, key)
        if route is None:
            yield Violation("I7", queue, f"the route {key.hex()} cannot be read")
            continue
        if store.get(Family.QUEUES, key[:PREFIX_BYTES]) is None:
            continue  # that breaks another rule
        found[route.topic_id] += 1
        if route.on is On.INSERT and _has_loads(store, route.queue_id):
            yield Violation("I20", queue, "has a load under way, and a route for what is added")
        topic = store.get(Family.TOPICS, queue_prefix(route.topic_id))
        record = None if topic is None else readable(decode_topic, topic)
        if record is None or not _may_have_sources(record):
            text = f"a route leads to topic number {route.topic_id}, which cannot have one"
            yield Violation("I20", queue, text)
    for prefix, value in store.walk(Family.TOPICS, b"", LAST_KEY):
        record, number = readable(decode_topic, value), split_queue_prefix(prefix)
        if record is not None and record.sources != found[number]:
            text = f"counts {record.sources} sources, but {found[number]} routes lead to it"
            yield Violation("I20", f"topic {record.name!r}", text)


def rebuild_routes(store: Store, records: dict[int, TopicRecord]) -> Iterator[str]:
    """Delete routes that break the rule, and count the others in the records of their topics.
    Yields a sentence for each that is lost."""
    batch, found = store.batch(), Counter[int]()
    for key, value in store.walk(Family.ROUTES, b"", LAST_KEY):
        route = readable(_read, key, value)
        record = None if route is None else records.get(route.topic_id)
        if (
            route is None
            or record is None
            or not _may_have_sources(record)
            or (route.on is On.INSERT and _has_loads(store, route.queue_id))
        ):
            batch.delete(Family.ROUTES, key)
            yield f"{_queue_name(store, key)}: a route to a topic"
        else:
            found[route.topic_id] += 1
    store.write(batch)
    for number, record in records.items():
        if record.sources != found[number]:
            records[number] = record._replace(sources=found[number])


def _read(key: bytes, value: bytes) -> Route:
    """Raises if a part of it is wrong."""
    route = Route(*split_route_key(key), decode_route(value))
    try:
        route.check()
    except QueueberError as error:
        raise ValueError(str(error)) from error
    return route


def _may_have_sources(record: TopicRecord) -> bool:
    settings = record.settings
    return not (
        record.is_deleted
        or record.is_closed
        or settings.refuses_when_full
        or settings.schema_version
    )


def _has_loads(store: Store, queue: QueueId) -> bool:
    prefix = queue_prefix(queue)
    return bool(store.scan(Family.LOADS, prefix, prefix + LOADS_END, 1))


def _queue_name(store: Store, key: bytes) -> str:
    """What violations and losses call the queue of a route."""
    prefix = key[:PREFIX_BYTES]
    stored = store.get(Family.QUEUES, prefix)
    queue = None if stored is None else readable(decode_queue, stored)
    return f"#{split_queue_prefix(prefix)}" if queue is None else queue[0]
