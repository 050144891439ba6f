"""Schemas of topics that do not fit their topic are reported, and repaired."""

from collections.abc import Callable, Iterator

import pytest

from queueber.db.families import Family
from queueber.db.records.schemas import document_key, encode_schema_head, schema_key
from queueber.engine.integrity.check_store import check_store
from queueber.engine.integrity.rebuild_store import rebuild_store
from queueber.engine.topics.schemas import list_schemas, set_schema
from queueber.model import TopicSchema
from tests.support.topic_rig import TopicRig


@pytest.fixture
def rig() -> Iterator[TopicRig]:
    made = TopicRig(partitions=1)
    made.run(set_schema, made.topic, b"one")
    made.publish(b"a", b"b", schema_version=1)
    made.run(set_schema, made.topic, b"two")
    yield made
    made.close()


def _head(version: int, offset: int) -> Callable[[TopicRig], None]:
    def damage(rig: TopicRig) -> None:
        batch = rig.store.batch()
        key = schema_key(rig.topic.prefix, version)
        batch.put(Family.SCHEMAS, key, encode_schema_head(TopicSchema(version, offset, 1)))
        rig.store.write(batch)

    return damage


def _without(key: Callable[[bytes, int], bytes]) -> Callable[[TopicRig], None]:
    def damage(rig: TopicRig) -> None:
        batch = rig.store.batch()
        batch.delete(Family.SCHEMAS, key(rig.topic.prefix, 1))
        rig.store.write(batch)

    return damage


@pytest.mark.parametrize(
    ("damage", "text", "left"),
    [
        (_head(2, 5), "holds from 5, not in 0 to 2", [(1, 0), (2, 2)]),
        (_head(1, 2), "", [(1, 2), (2, 2)]),
        (_head(3, 2), "schema 3 is there, but 2 is in force", [(1, 0), (2, 2)]),
        (_without(document_key), "schema 1 has no document", [(2, 2)]),
        (_without(schema_key), "schema 1 has a document and no offset", [(2, 2)]),
    ],
)
def test_damage_is_told_and_repaired(
    rig: TopicRig, damage: Callable[[TopicRig], None], text: str, left: list[tuple[int, int]]
) -> None:
    assert list(check_store(rig.store)) == []

    damage(rig)
    found = list(check_store(rig.store))
    list(rebuild_store(rig.store))

    assert (text in found[0].text and found[0].rule == "I15") if text else not found
    assert list(check_store(rig.store)) == []
    listed = list_schemas(rig.store, rig.topic)
    assert [(each.version, each.from_offset) for each in listed] == left
