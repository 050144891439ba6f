"""Routes of the queues of `EngineAgainstModel`: each change that the model makes has one event."""

import json
from collections import defaultdict
from typing import Any
from zlib import crc32

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from queueber.db.records.blocks import unpack_attributes
from queueber.engine.kernel.transaction import Transaction
from queueber.engine.topics.read import read
from queueber.engine.topics.topic_state import TopicState
from queueber.errors import FailedPrecondition
from queueber.limits import MIB
from queueber.model import Bounds, EventPayload, On, Source, TopicSettings
from tests.engine.load_rules import LoadRules
from tests.support.reference_model import (
    EVENT_ITEM_ATTRIBUTES_MAX,
    EVENT_OWN_ATTRIBUTES,
    ModelEvent,
)

TOPIC = "events"
PARTITIONS = 2


class RouteRules(LoadRules):
    """Sources come and go; what they publish is read after every step."""

    patch: pytest.MonkeyPatch

    def __init__(self) -> None:
        super().__init__()
        self.read_up_to = [0] * PARTITIONS

    def create_topic(self) -> None:
        most = EVENT_OWN_ATTRIBUTES + EVENT_ITEM_ATTRIBUTES_MAX
        self.patch.setattr("queueber.engine.routes.events.ATTRIBUTES_MAX", most)
        self._run(self.engine.topics.create, TOPIC, TopicSettings(), partitions=PARTITIONS)

    def add_sources(self) -> None:
        """Most changes have events. Loads go to the first queue more often than to the other."""
        self.add_or_drop_source("other", On.INSERT, EventPayload.FULL)
        for name in self.models:
            self.add_or_drop_source(name, On.UPDATE, EventPayload.DIFF)
            self.add_or_drop_source(name, On.DELETE, EventPayload.FULL)

    def _run(self, operation: Any, *arguments: Any, **named: Any) -> Any:
        tx = Transaction(self.engine.kernel, self.now_ms, None)
        done = operation(tx, *arguments, **named)
        tx.commit()
        return done

    @property
    def topic(self) -> TopicState:
        return self.engine.topics.get(TOPIC, self.now_ms)

    @rule(
        name=st.sampled_from(["default", "other"]),
        on=st.sampled_from(On),
        payload=st.sampled_from(EventPayload),
    )
    def add_or_drop_source(self, name: str, on: On, payload: EventPayload) -> None:
        model, source = self.models[name], Source(name, on, payload=payload)
        if on in model.sources:
            assert self._run(self.engine.routes.drop, self.topic, name, on) == 1
            del model.sources[on]
        elif on is On.INSERT and model.loads:
            with pytest.raises(FailedPrecondition, match="whose items would have no events"):
                self._run(self.engine.routes.add, self.topic, source)
        else:
            assert self._run(self.engine.routes.add, self.topic, source)
            assert not self._run(self.engine.routes.add, self.topic, source)
            model.sources[on] = payload

    @invariant()
    def every_change_has_one_event(self) -> None:
        """In order: those of a step come after those of the step before, and each item's within a
        step as they happened."""
        expected: dict[tuple[str, bytes], list[ModelEvent]] = defaultdict(list)
        for name, model in self.models.items():
            for event in model.events:
                expected[name, event.id].append(event)
            model.events.clear()
        found: dict[tuple[str, bytes], list[ModelEvent]] = defaultdict(list)
        for partition in range(PARTITIONS):
            for queue, event in self._new_events(partition):
                assert crc32((event.key or event.id.hex()).encode()) % PARTITIONS == partition
                found[queue, event.id].append(event)
        assert found == expected

    def _new_events(self, partition: int) -> list[tuple[str, ModelEvent]]:
        topic, found = self.topic, []
        while (at := self.read_up_to[partition]) < topic.next_offset(partition):
            page = read(self.engine.store, topic, partition, at, Bounds(1000, MIB))
            for packed in page.packed:
                rows = zip(packed.split(), packed.keys, packed.attributes, strict=True)
                found += [_event(payload, key.decode(), own) for payload, key, own in rows]
            self.read_up_to[partition] = page.next_offset
        return found


def _event(payload: bytes, key: str, packed: bytes) -> tuple[str, ModelEvent]:
    attributes = unpack_attributes(packed)
    own = {name: attributes.pop(f"queueber.{name}") for name in _OWN}
    item_id = bytes.fromhex(own["id"])
    said: Any = payload if own["payload"] == "full" else json.loads(payload)
    if own["payload"] == "key":
        assert (said["id"], said["key"]) == (own["id"], None if key == own["id"] else key)
        said = None
    event = ModelEvent(
        own["change"],
        item_id,
        "" if key == own["id"] else key,
        int(own["attempt"]),
        own["payload"],
        said["state"][1] if own["payload"] == "diff" else said,
        attributes,
    )
    assert own["op"] == ModelEvent.ons[event.change]
    return own["queue"], event


_OWN = ("queue", "op", "change", "id", "attempt", "payload")
