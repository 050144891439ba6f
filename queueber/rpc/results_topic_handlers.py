"""The capability of the results of a queue as a topic, which can only be read."""

from typing import Any

from queueber.auth.roles import Action
from queueber.rpc.calls import Answer, Methods, answer_with, call, check_may_hold, refuse_methods
from queueber.rpc.group_handlers import SubscriptionHandler, consumer_of
from queueber.rpc.rights import rights_of
from queueber.rpc.topic_reads import answer_read
from queueber.schema import wire
from queueber.service.result_messages import ResultsHandle
from queueber.service.service import Service
from queueber.wire.subscriptions import read_subscribing
from queueber.wire.topics import (
    read_group_settings,
    read_position,
    write_group_info,
    write_topic_info,
)


class ResultsTopicHandler(Methods, wire.Topic.Server):  # type: ignore[misc]  # capnp is untyped
    interface = "Topic"

    def __init__(self, service: Service, topic: ResultsHandle) -> None:
        # Whoever may read the queue may read its results.
        rights = rights_of(service, topic.session, ("Topic",), "queue", topic.queue.name)
        super().__init__(service, topic.session, rights)
        self._topic = topic
        self._results = service.result_topics
        topic.session.queues += 1

    def __del__(self) -> None:
        self._session.queues -= 1

    @call
    def read_context(self, context: Any) -> Answer:
        return answer_read(context, self._session, self._topic, self._results.read)

    @call
    async def describe_context(self, context: Any) -> None:
        self._session.answers.check()
        write_topic_info(context.results.init("topic"), self._results.describe(self._topic))
        self._count(context)

    @call
    def createGroup_context(self, context: Any) -> Answer:  # noqa: N802  the schema's name
        params = context.params
        settings, at = read_group_settings(params.settings), read_position(params.at)
        created = self._results.create_group(self._topic, params.name, settings, at)
        return answer_with(context, "created", created)

    @call
    async def listGroups_context(self, context: Any) -> None:  # noqa: N802  the schema's name
        self._session.answers.check()
        found = self._results.list_groups(self._topic)
        listed = context.results.init("groups", len(found))
        for at, info in enumerate(found):
            write_group_info(listed[at], info)
        self._count(context)

    @call
    async def describeGroup_context(self, context: Any) -> None:  # noqa: N802  the schema's name
        info = self._results.describe_group(self._topic, context.params.name)
        write_group_info(context.results.init("group"), info)

    @call
    def deleteGroup_context(self, context: Any) -> Answer:  # noqa: N802  the schema's name
        deleted = self._results.delete_group(self._topic, context.params.name)
        return answer_with(context, "deleted", deleted)

    @call
    def ack_context(self, context: Any) -> Answer:
        p = context.params
        cursor = self._results.ack(self._topic, p.group, p.partition, p.offset)
        return answer_with(context, "offset", cursor)

    @call
    def subscribe_context(self, context: Any) -> Answer:
        params = context.params
        self._check_right(Action.WORK if params.req.group else Action.READ)
        check_may_hold(self._session)
        begun = self._service.subscriptions.subscribe_results(
            self._topic, read_subscribing(params.req), consumer_of(params)
        )

        async def answer() -> None:
            handler = SubscriptionHandler(self._service, self._session, await begun)
            context.results.subscription = handler

        return answer()


_REFUSED = (
    "publish", "trim", "close", "fork", "find", "resetGroup", "pauseGroup", "resumeGroup", "group",
    "setSchema", "readSchema", "listSchemas", "consume", "withdrawConsume", "addSource",
    "dropSource",
)  # fmt: skip


def _not_of_results(self: ResultsTopicHandler, method: str) -> str:
    return (
        f"{self._topic.name!r} has the results of a queue, and no {method!r}; they can be read, "
        "subscribed to and acknowledged"
    )


refuse_methods(ResultsTopicHandler, _REFUSED, _not_of_results)
