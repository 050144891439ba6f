"""Schemas of topics through the client, on a real server."""

import pytest

import queueber
from queueber.testing import running_server


def test_a_topic_has_versions_of_a_schema_from_offsets_on() -> None:
    with running_server() as server, queueber.connect(server.address) as client:
        assert client.create_topic("t", schema=b"one", messages=[b"a"])
        topic = client.topic("t")
        number = client.describe_topic("t").number
        second = topic.set_schema(
            b"two", expected_version=1, expected_offset=1, topic_number=number
        )
        end = topic.publish(b"b", schema_version=2, topic_number=number).end_offset

        assert end == 2
        assert (second.version, second.from_offset, second.document) == (2, 1, b"two")
        assert topic.schema() == second
        assert topic.schema(1).document == b"one"
        assert [(each.version, each.from_offset) for each in topic.schemas()] == [(1, 0), (2, 1)]
        with pytest.raises(queueber.NotFound, match="no version 9"):
            topic.schema(9)
        with pytest.raises(queueber.FailedPrecondition) as refused:
            topic.publish(b"c", schema_version=1)
        assert refused.value.numbers == {"schema_version": 2}

        # One of the same name has nothing of it.
        client.delete_topic("t")
        client.create_topic("t")
        with pytest.raises(queueber.FailedPrecondition):
            client.topic("t").publish(b"c", topic_number=number)
        with pytest.raises(queueber.NotFound, match="has none"):
            client.topic("t").schema()


def test_wrong_arguments_are_refused_before_any_call() -> None:
    with running_server() as server, queueber.connect(server.address) as client:
        client.create_topic("t")
        topic = client.topic("t")
        for document in ("text", b"", b"x" * (256 * 1024 + 1)):
            with pytest.raises(queueber.QueueberError, match="schema: "):
                topic.set_schema(document)  # type: ignore[arg-type]
        with pytest.raises(queueber.InvalidArgument, match="version"):
            topic.schema(0)
        with pytest.raises(queueber.InvalidArgument, match="partitions: 2"):
            client.create_topic("many", schema=b"x", partitions=2)
        assert topic.schemas() == []
        assert list(client.topics()) == ["t"]
