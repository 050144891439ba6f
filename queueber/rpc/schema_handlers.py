"""The methods about the schemas of a topic."""

from typing import Any

from queueber.rpc.calls import Answer, Methods, call, respond_with
from queueber.service.topic_handle import TopicHandle
from queueber.wire.schemas import read_expected, write_topic_schema


class SchemaMethods(Methods):
    interface = "Topic"
    _topic: TopicHandle

    @call
    def setSchema_context(self, context: Any) -> Answer:  # noqa: N802  the schema's name
        params = context.params
        made = self._service.schemas.set_schema(
            self._topic,
            bytes(params.document),
            read_expected(params.expectedVersion),
            read_expected(params.expectedOffset),
            params.topicNumber,
        )
        return respond_with(context, "topicSchema", made, write_topic_schema)

    @call
    def readSchema_context(self, context: Any) -> Answer:  # noqa: N802  the schema's name
        self._session.answers.check()
        found = self._service.schemas.find(self._topic, context.params.version)
        return respond_with(context, "topicSchema", found, write_topic_schema)

    @call
    def listSchemas_context(self, context: Any) -> Answer:  # noqa: N802  the schema's name
        self._session.answers.check()
        found = self._service.schemas.all(self._topic)

        async def answer() -> None:
            schemas = await found
            listed = context.results.init("schemas", len(schemas))
            for at, each in enumerate(schemas):
                write_topic_schema(listed[at], each)

        return answer()
