"""Reads events, totals and items from an engine, when nobody works with it any more."""

import json
from collections.abc import Iterator
from dataclasses import asdict

from faults.facts import Facts
from faults.routes.calls import check_calls
from faults.routes.events import FoundEvent, check_events
from faults.routes.mirrors import OWN, FoundMessage
from queueber.db.records.blocks import unpack_attributes
from queueber.engine.open import Engine
from queueber.engine.queue.peek import peek
from queueber.engine.queue.queue_state import QueueState
from queueber.engine.topics.read import read
from queueber.engine.topics.topic_state import TopicState
from queueber.limits import MIB
from queueber.model import Bounds, ItemState, PackedMessages

_PAGE = 1000


def check_routed(
    engine: Engine, queue: str, topic: str, now_ms: int, facts: Facts | None = None
) -> list[str]:
    """What is wrong with the events of a queue that was routed to the topic from its birth;
    `facts` are those of its calls, if there is a history."""
    state = engine.queues.get(queue)
    messages = read_messages(engine, engine.topics.get(topic, now_ms))
    events = [_event(each) for each in messages if each.own["queue"] == queue]
    wrong = [] if facts is None else check_calls(queue, events, facts)
    counters = asdict(state.counters)
    totals = {
        name.removesuffix("_total"): count
        for name, count in counters.items()
        if name.endswith("_total")
    }
    return wrong + check_events(queue, events, totals, _items(engine, state))


def read_messages(engine: Engine, topic: TopicState) -> list[FoundMessage]:
    """Those of each partition in order. By default all events of an item are in one."""
    found: list[FoundMessage] = []
    for partition in range(topic.partitions):
        at = topic.first_offset(partition)
        while at < topic.next_offset(partition):
            page = read(engine.store, topic, partition, at, Bounds(_PAGE, MIB))
            for packed in page.packed:
                found += _messages(partition, packed)
            at = page.next_offset
    return found


def _messages(partition: int, packed: PackedMessages) -> Iterator[FoundMessage]:
    rows = zip(packed.split(), packed.keys, packed.attributes, strict=True)
    for at, (payload, key, attributes) in enumerate(rows):
        own, of_item = {}, {}
        for name, value in unpack_attributes(attributes).items():
            if name.startswith(OWN):
                own[name.removeprefix(OWN)] = value
            else:
                of_item[name] = value
        yield FoundMessage(
            partition, packed.offset + at, packed.sequence + at, key.decode(), payload, own,
            of_item,
        )  # fmt: skip


def _event(message: FoundMessage) -> FoundEvent:
    own, changed = message.own, json.loads(message.payload)
    was, now = changed["state"]
    return FoundEvent(
        own["queue"],
        own["change"],
        own["id"],
        int(own["attempt"]),
        was,
        now,
        "attempt" in changed and was is not None,
        changed.get("error", (None, None))[1],
    )


def _items(engine: Engine, queue: QueueState) -> dict[str, str]:
    """The state of each item."""
    found: dict[str, str] = {}
    for state in ItemState:
        after = b""
        while True:
            items, after = peek(engine.store, queue, state, after, _PAGE, MIB)
            found |= {each.id.hex(): state.value for each in items}
            if not after:
                break
    return found
