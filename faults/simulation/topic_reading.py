"""Reads the final state of topics and their groups at the end of a simulated history."""

from collections.abc import Iterator

from faults.final_state import FinalState, FoundItem
from faults.history import printed
from faults.simulation.reading import items_of
from faults.simulation.route_roles import TOPICS_OF_ROUTES
from faults.simulation.topic_caller import told_messages
from faults.simulation.topic_roles import DEDUP_WINDOW_MS
from faults.topics.final import FinalPartition, FinalSchema, FinalTopic, FinalTopics
from faults.topics.settled import place_id
from queueber.db.records import blocks
from queueber.engine.topics.groups import cursor, is_untouched
from queueber.engine.topics.read import read
from queueber.engine.topics.schemas import find_schema, list_schemas
from queueber.engine.topics.shared_groups import SharedGroup
from queueber.engine.topics.topic_state import TopicState
from queueber.limits import MIB
from queueber.model import Bounds, GroupKind, ItemState
from queueber.service.service import Service
from queueber.service.session import QueueHandle, Session

_ALL = 10_000


def final_topics(service: Service) -> FinalTopics:
    engine, now_ms = service.shell.engine, service.shell.clock.now_ms()
    final = FinalTopics()
    for name in engine.topics.names("", "", _ALL, now_ms):
        if name in TOPICS_OF_ROUTES:
            continue  # no call has published what they have
        topic = engine.topics.get(name, now_ms)
        final.topics[name] = _topic(service, topic, now_ms)
        for group in topic.groups.values():
            if group.kind is GroupKind.ORDERED:
                final.untouched[name, group.name] = is_untouched(topic, group)
                for partition in range(topic.partitions):
                    place = (name, group.name, partition)
                    final.cursors[place] = cursor(topic, group, partition)
    return final


def _topic(service: Service, topic: TopicState, now_ms: int) -> FinalTopic:
    settings = topic.settings
    return FinalTopic(
        [_partition(service, topic, each) for each in range(topic.partitions)],
        settings.keeps_last_per_key,
        settings.retention_ms,
        bool(settings.retention_ms or settings.retention_messages or settings.retention_bytes),
        topic.record.is_closed,
        now_ms,
        _block_messages() if settings.deletes_acknowledged else 0,
        any(each.kind is GroupKind.QUEUE for each in topic.groups.values()),
        topic.record.content_type,
        settings.schema_version,
        tuple(_schemas(service, topic)),
    )


def _schemas(service: Service, topic: TopicState) -> Iterator[FinalSchema]:
    store = service.shell.engine.store
    for each in list_schemas(store, topic):
        document = find_schema(store, topic, each.version).document
        yield FinalSchema(each.version, each.from_offset, printed(document))


def _block_messages() -> int:
    """As the limit is now, which may be a small one."""
    found: int = vars(blocks)["BLOCK_ITEMS_MAX"]
    return found


def _partition(service: Service, topic: TopicState, partition: int) -> FinalPartition:
    first, end = topic.first_offset(partition), topic.next_offset(partition)
    store = service.shell.engine.store
    found = read(store, topic, partition, first, Bounds(_ALL, MIB))
    messages = [tuple(each) for packed in found.packed for each in told_messages(packed)]
    return FinalPartition(first, end, messages)


def final_group(service: Service, topic: TopicState, group: str, session: Session) -> FinalState:
    """What a group that shares messages has: those that came back, and those nobody has had."""
    queue = topic.groups[group].queue
    handle = QueueHandle(queue, session)
    found = {
        each.id.hex(): FoundItem(printed(each.contents), state.value)
        for state in ItemState
        for each in items_of(service, handle, state)
    }
    assert isinstance(queue, SharedGroup)
    for partition in range(topic.partitions):
        at = queue.messages.positions.get(partition, 0)
        for message in _partition(service, topic, partition).messages:
            if message[0] >= at:
                ready = FoundItem(message[1], ItemState.READY.value)
                found.setdefault(place_id(partition, message[0]), ready)
    return FinalState(found, dedup_window_ms=DEDUP_WINDOW_MS)
