"""Schemas of topics: set the next version, show those that were set."""

from collections.abc import Awaitable
from functools import partial

from queueber.engine.topics.schemas import find_schema, list_schemas, set_schema
from queueber.model import TopicSchema
from queueber.service.shell import Shell
from queueber.service.topic_handle import TopicHandle
from queueber.service.topics import Topics
from queueber.service.validate.topics import check_schema_document


class Schemas:
    def __init__(self, shell: Shell, topics: Topics) -> None:
        self._shell = shell
        self._topics = topics

    def set_schema(
        self,
        topic: TopicHandle,
        document: bytes,
        expected_version: int | None,
        expected_offset: int | None,
        topic_number: int = 0,
    ) -> Awaitable[TopicSchema]:
        """The next version, in force for all messages that come after those that came before."""
        check_schema_document(document)
        state = self._topics.alive(topic)
        change = partial(
            set_schema,
            topic=state,
            document=document,
            expected_version=expected_version,
            expected_offset=expected_offset,
            topic_number=topic_number,
        )
        return self._topics.write(state, topic.session, change, "topic_schema_set", {})

    def find(self, topic: TopicHandle, version: int) -> Awaitable[TopicSchema]:
        """A version, once it is durable."""
        shell = self._shell
        return shell.durable(find_schema(shell.engine.store, self._topics.alive(topic), version))

    def all(self, topic: TopicHandle) -> Awaitable[list[TopicSchema]]:
        shell = self._shell
        return shell.durable(list_schemas(shell.engine.store, self._topics.alive(topic)))
