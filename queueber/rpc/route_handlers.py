"""The methods about the sources of a topic."""

from typing import Any

from queueber.rpc.calls import Answer, Methods, answer_with, call
from queueber.service.topic_handle import TopicHandle
from queueber.wire.routes import read_on, read_source


class RouteMethods(Methods):
    interface = "Topic"
    _topic: TopicHandle

    @call
    def addSource_context(self, context: Any) -> Answer:  # noqa: N802  the schema's name
        added = self._service.routes.add_source(self._topic, read_source(context.params.source))
        return answer_with(context, "added", added)

    @call
    def dropSource_context(self, context: Any) -> Answer:  # noqa: N802  the schema's name
        params = context.params
        dropped = self._service.routes.drop_source(self._topic, params.queue, read_on(params.on))
        return answer_with(context, "dropped", dropped)
