"""The methods of one topic about its groups and subscriptions, and those of a subscription."""

from collections.abc import Awaitable
from typing import Any

from queueber.auth.roles import Action
from queueber.errors import InvalidArgument
from queueber.model import Delivery, GroupKind
from queueber.rpc.calls import Answer, Methods, answer_with, call, check_may_hold, respond
from queueber.rpc.queue_handlers import GroupQueueHandler
from queueber.rpc.rights import rights_of
from queueber.schema import wire
from queueber.service.rights import check_right
from queueber.service.service import Service
from queueber.service.session import Session
from queueber.service.subscription import Subscription
from queueber.service.topic_handle import TopicHandle
from queueber.wire.subscriptions import (
    read_consuming,
    read_settlement,
    read_subscribing,
    write_delivery,
)
from queueber.wire.topics import (
    read_group_settings,
    read_partition,
    read_position,
    write_group_info,
)


class GroupMethods(Methods):
    interface = "Topic"
    _topic: TopicHandle

    @call
    def createGroup_context(self, context: Any) -> Answer:  # noqa: N802  the schema's name
        params = context.params
        settings, at = read_group_settings(params.settings), read_position(params.at)
        if settings.kind is GroupKind.QUEUE:
            # It goes on adding to the queue, whoever is connected.
            self._check_right(Action.ADMINISTER)
            check_right(self._session, Action.ADD, "queue", settings.queue)
        created = self._service.groups.create_group(self._topic, params.name, settings, at)
        return answer_with(context, "created", created)

    @call
    async def listGroups_context(self, context: Any) -> None:  # noqa: N802  the schema's name
        self._session.answers.check()
        found = self._service.groups.list_groups(self._topic)
        listed = context.results.init("groups", len(found))
        for at, info in enumerate(found):
            write_group_info(listed[at], info)
        self._count(context)

    @call
    async def describeGroup_context(self, context: Any) -> None:  # noqa: N802  the schema's name
        self._session.answers.check()
        info = self._service.groups.describe_group(self._topic, context.params.name)
        write_group_info(context.results.init("group"), info)
        self._count(context)

    @call
    def deleteGroup_context(self, context: Any) -> Answer:  # noqa: N802  the schema's name
        deleted = self._service.groups.delete_group(self._topic, context.params.name)
        return answer_with(context, "deleted", deleted)

    @call
    def resetGroup_context(self, context: Any) -> Answer:  # noqa: N802  the schema's name
        params = context.params
        partition, to = read_partition(params.partition), read_position(params.to)
        return self._service.groups.reset_group(self._topic, params.name, partition, to)

    @call
    def pauseGroup_context(self, context: Any) -> Answer:  # noqa: N802  the schema's name
        params = context.params
        return self._service.groups.pause_group(self._topic, params.name, params.forMs)

    @call
    def resumeGroup_context(self, context: Any) -> Answer:  # noqa: N802  the schema's name
        return self._service.groups.resume_group(self._topic, context.params.name)

    @call
    def ack_context(self, context: Any) -> Answer:
        p = context.params
        cursor = self._service.groups.ack(self._topic, p.group, p.partition, p.offset)
        return answer_with(context, "offset", cursor)

    @call
    async def group_context(self, context: Any) -> None:
        check_may_hold(self._session)
        queue = self._service.groups.open_group(self._topic, context.params.name)
        rights = rights_of(self._service, self._session, ("Queue",), "topic", self._topic.name)
        context.results.queue = GroupQueueHandler(self._service, queue, rights)

    @call
    def consume_context(self, context: Any) -> Answer:
        request = context.params.req
        memory, token = self._session.answers.new_answer(), request.token
        consumed = self._service.windows.consume(
            self._topic,
            read_consuming(request),
            wait_ms=request.timeoutMs,
            name=(self._session, token) if token else None,
            memory=memory,
        )

        async def answer() -> None:
            with memory:
                write_delivery(context.results.init("delivery"), await consumed)

        return answer()

    @call
    async def withdrawConsume_context(self, context: Any) -> None:  # noqa: N802  the schema's name
        self._service.polls.withdraw_poll((self._session, context.params.token))

    @call
    def subscribe_context(self, context: Any) -> Answer:
        params = context.params
        self._check_right(Action.WORK if params.req.group else Action.READ)
        check_may_hold(self._session)
        begun = self._service.subscriptions.subscribe(
            self._topic, read_subscribing(params.req), consumer_of(params)
        )

        async def answer() -> None:
            handler = SubscriptionHandler(self._service, self._session, await begun)
            context.results.subscription = handler

        return answer()


def consumer_of(params: Any) -> "ConsumerReceiver":
    if not params._has("consumer"):
        raise InvalidArgument("consumer: there is none; give the capability to deliver to")
    return ConsumerReceiver(params.consumer)


class ConsumerReceiver:
    """The capability that a subscriber has given."""

    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer

    def deliver(self, delivery: Delivery) -> Awaitable[object]:
        request = self._consumer.deliver_request()
        write_delivery(request.init("delivery"), delivery)
        sent: Awaitable[object] = request.send()
        return sent

    def heartbeat(self, time_ms: int, sequence: int) -> Awaitable[object]:
        sent: Awaitable[object] = self._consumer.heartbeat(time_ms, sequence)
        return sent

    def ended(self, error: str) -> Awaitable[object]:
        sent: Awaitable[object] = self._consumer.ended(error)
        return sent


class SubscriptionHandler(Methods, wire.Subscription.Server):  # type: ignore[misc]  # untyped
    """The capability of one subscription, which ends when its holder lets go of it."""

    interface = "Subscription"

    def __init__(self, service: Service, session: Session, subscription: Subscription) -> None:
        super().__init__(service, session)
        self._subscription = subscription
        session.queues += 1

    def __del__(self) -> None:
        self._session.queues -= 1
        self._subscription.let_go()

    @call
    async def grant_context(self, context: Any) -> None:
        self._subscription.grant(context.params.credits)

    @call
    def ack_context(self, context: Any) -> Answer:
        params = context.params
        cursor = self._service.subscriptions.ack(
            self._subscription, params.partition, params.offset
        )
        return answer_with(context, "offset", cursor)

    @call
    def settle_context(self, context: Any) -> Answer:
        settlement = read_settlement(context.params.req)
        settled = self._service.subscriptions.settle(self._subscription, settlement)
        return respond(context, "settled", settled)

    @call
    async def close_context(self, context: Any) -> None:
        self._subscription.drop()
