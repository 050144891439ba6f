"""Calls about the schemas of a topic."""

from concurrent.futures import Future
from operator import methodcaller
from typing import Any

from queueber.client.arguments import values
from queueber.client.transport.remote_queue import RemoteQueue
from queueber.errors import InvalidArgument, ResourceExhausted
from queueber.limits import SCHEMA_BYTES_MAX, SCHEMA_VERSION_MAX
from queueber.model import TopicSchema
from queueber.wire.schemas import read_topic_schema, write_expected


class SchemaCalls:
    def __init__(self, topic: RemoteQueue) -> None:
        self._topic = topic

    def set_schema(
        self,
        document: object,
        expected_version: int | None,
        expected_offset: int | None,
        topic_number: int,
    ) -> "Future[TopicSchema]":
        content = to_document(document)
        if expected_version is not None:
            values.to_number("expected_version", expected_version, limit=SCHEMA_VERSION_MAX)
        if expected_offset is not None:
            values.to_number("expected_offset", expected_offset, what="an offset")
        values.to_number("topic_number", topic_number)

        def send(topic: Any) -> Any:
            request = topic.setSchema_request()
            request.document = content
            request.expectedVersion = write_expected(expected_version)
            request.expectedOffset = write_expected(expected_offset)
            request.topicNumber = topic_number
            return request.send()

        return self._topic.ask(
            send,
            lambda response: read_topic_schema(response.topicSchema),
            is_repeatable=False,
        )

    def find(self, version: int | None) -> "Future[TopicSchema]":
        number = 0
        if version is not None:
            number = values.to_number("version", version, least=1, limit=SCHEMA_VERSION_MAX)
        return self._topic.ask(
            methodcaller("readSchema", number),
            lambda response: read_topic_schema(response.topicSchema),
        )

    def all(self) -> "Future[list[TopicSchema]]":
        return self._topic.ask(
            methodcaller("listSchemas"),
            lambda response: [read_topic_schema(each) for each in response.schemas],
        )


def to_document(document: object) -> bytes:
    """The document of a schema, which the server keeps as it is."""
    if not isinstance(document, bytes | bytearray | memoryview):
        raise InvalidArgument(f"schema: {type(document).__name__} is not bytes")
    content = bytes(document)
    if not content:
        raise InvalidArgument("schema: it is empty; give its document")
    if len(content) > SCHEMA_BYTES_MAX:
        raise ResourceExhausted(
            f"schema: it has {len(content)} bytes; the limit is {SCHEMA_BYTES_MAX}"
        )
    return content
