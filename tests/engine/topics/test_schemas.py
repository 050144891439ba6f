"""Schemas of a topic: versions, the offsets from which on they hold, and what is refused."""

from collections.abc import Iterator
from typing import Any

import pytest

from queueber.engine.integrity.check_store import check_store
from queueber.engine.topics.schemas import find_schema, list_schemas, put_first, set_schema
from queueber.errors import FailedPrecondition, InvalidArgument, NotFound, QueueberError
from queueber.model import TopicSchema, TopicSettings
from tests.support.topic_rig import TopicRig


@pytest.fixture
def rig() -> Iterator[TopicRig]:
    made = TopicRig(partitions=1)
    yield made
    made.close()


def set_(rig: TopicRig, document: bytes, **expected: int) -> TopicSchema:
    made: TopicSchema = rig.run(set_schema, rig.topic, document, **expected)
    return made


def test_a_version_holds_from_where_the_topic_goes_on(rig: TopicRig) -> None:
    first = set_(rig, b"one")
    rig.publish(b"a", b"b", schema_version=1)
    second = set_(rig, b"two", expected_version=1, expected_offset=2)

    number = rig.topic.queue_id
    assert first == TopicSchema(1, 0, rig.now_ms, b"one", number)
    assert second == TopicSchema(2, 2, rig.now_ms, b"two", number)
    assert rig.topic.settings.schema_version == 2
    assert list_schemas(rig.store, rig.topic) == [
        TopicSchema(1, 0, rig.now_ms),
        TopicSchema(2, 2, rig.now_ms),
    ]
    assert find_schema(rig.store, rig.topic, 1) == first
    assert find_schema(rig.store, rig.topic, 0) == second
    assert list(check_store(rig.store)) == []


def test_messages_must_come_with_the_version_in_force(rig: TopicRig) -> None:
    set_(rig, b"one")
    before = rig.dump()

    for version in (0, 2):
        with pytest.raises(FailedPrecondition) as refused:
            rig.publish(b"a", schema_version=version)
        assert refused.value.numbers == {"schema_version": 1}

    assert rig.dump() == before


def test_messages_for_another_topic_of_the_name_are_refused(rig: TopicRig) -> None:
    before, number = rig.dump(), rig.topic.queue_id

    with pytest.raises(FailedPrecondition) as refused:
        rig.publish(b"a", topic_number=number + 1)

    assert refused.value.numbers == {"topic_number": number}
    assert rig.dump() == before
    assert list(rig.publish(b"a", topic_number=number).offsets) == [0]


@pytest.mark.parametrize(
    ("expected", "numbers"),
    [
        ({"expected_version": 0}, {"schema_version": 1}),
        ({"expected_version": 2}, {"schema_version": 1}),
        ({"expected_offset": 0}, {"tail": 1}),
        ({"topic_number": 999}, {"topic_number": 1}),
    ],
)
def test_what_is_not_as_expected_changes_nothing(
    rig: TopicRig, expected: dict[str, int], numbers: dict[str, int]
) -> None:
    set_(rig, b"one")
    rig.publish(b"a", schema_version=1)
    before = rig.dump()

    with pytest.raises(FailedPrecondition) as refused:
        set_(rig, b"two", **expected)

    assert set(refused.value.numbers) == set(numbers)
    assert rig.dump() == before


def test_a_closed_topic_and_one_of_many_partitions_take_no_schema(rig: TopicRig) -> None:
    rig.run(rig.topics.close, rig.topic)
    rig.run(rig.topics.create, "many", TopicSettings(), partitions=2)
    before = rig.dump()

    with pytest.raises(FailedPrecondition, match="closed"):
        set_(rig, b"one")
    rig.name = "many"
    with pytest.raises(InvalidArgument, match="2 partitions"):
        set_(rig, b"one")

    assert rig.dump() == before


def test_configuring_never_takes_a_version_back_nor_adds_partitions(rig: TopicRig) -> None:
    set_(rig, b"one")
    before = rig.dump()
    refusals: list[tuple[type[QueueberError], dict[str, Any], TopicSettings]] = [
        (FailedPrecondition, {}, TopicSettings()),
        (InvalidArgument, {"partitions": 2}, TopicSettings(schema_version=1)),
    ]

    for error, more, settings in refusals:
        with pytest.raises(error):
            rig.run(rig.topics.configure, rig.topic, settings, **more)

    assert rig.dump() == before
    rig.run(rig.topics.configure, rig.topic, TopicSettings(schema_version=1, retention_ms=1000))
    assert rig.topic.settings.schema_version == 1


def test_a_version_that_was_never_set_is_not_found(rig: TopicRig) -> None:
    with pytest.raises(NotFound, match="has none"):
        find_schema(rig.store, rig.topic, 0)
    with pytest.raises(NotFound, match="no version 3"):
        find_schema(rig.store, rig.topic, 3)
    assert list_schemas(rig.store, rig.topic) == []


def test_a_topic_is_born_with_a_schema(rig: TopicRig) -> None:
    rig.run(rig.topics.create, "born", TopicSettings(schema_version=1))
    rig.name = "born"
    rig.run(put_first, rig.topic, b"one")

    assert find_schema(rig.store, rig.topic, 0).document == b"one"
    assert list(check_store(rig.store)) == []
