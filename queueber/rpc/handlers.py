"""The capabilities that a connection is given: the bootstrap object, and queues by name."""

import contextlib
from collections.abc import Callable
from typing import Any

from queueber.auth.callers import everybody
from queueber.errors import (
    FailedPrecondition,
    InvariantViolation,
    PermissionDenied,
    QueueberError,
)
from queueber.model import ServerInfo
from queueber.rpc.backup_handlers import BackupMethods
from queueber.rpc.calls import Answer, answer_with, call, check_may_hold
from queueber.rpc.hello import take_hello
from queueber.rpc.measure_handlers import MeasureMethods
from queueber.rpc.queue_handlers import AllQueueMethods, QueueHandler
from queueber.rpc.rights import rights_of
from queueber.rpc.schedule_handlers import ScheduleMethods
from queueber.rpc.topic_handlers import TopicsMethods
from queueber.schema import wire
from queueber.service.queues import DEFAULT_QUEUE
from queueber.service.service import Service
from queueber.service.session import Session
from queueber.wire.callers import write_caller, write_tokens
from queueber.wire.queues import read_settings, write_server_info, write_stats


def end_session(service: Service, session: Session) -> None:
    """A connection is over: end its subscriptions, and expire the leases that are bound to it."""
    service.subscriptions.connection_ended(session)
    # If the store cannot write any more, they end when they expire.
    with contextlib.suppress(QueueberError):
        try:
            service.bound_leases.connection_ended(session)
        except InvariantViolation as error:
            session.crashed(error)


class ServiceHandler(
    AllQueueMethods,
    TopicsMethods,
    BackupMethods,
    MeasureMethods,
    ScheduleMethods,
    wire.Service.Server,  # type: ignore[misc]  # capnp is untyped
):
    """The bootstrap object of one connection. Used as a queue, it is the default one."""

    interface = "Service"

    def __init__(
        self, service: Service, session: Session, describe: Callable[[], ServerInfo]
    ) -> None:
        rights = rights_of(service, session, ("Queue", "Service"), "queue", DEFAULT_QUEUE)
        super().__init__(service, service.queues.handle(DEFAULT_QUEUE, session), rights)
        self._describe = describe

    def connection_ended(self) -> None:
        end_session(self._service, self._session)

    @call
    async def hello_context(self, context: Any) -> None:
        take_hello(self._session, context.params)

    @call
    async def authenticate_context(self, context: Any) -> None:
        """A server that is not protected takes every credential, and looks at none."""
        if self._session.caller is not None:
            raise FailedPrecondition("this connection has authenticated; open another one")
        context.results.service = self
        write_caller(context.results.init("caller"), everybody().info)

    @call
    async def whoAmI_context(self, context: Any) -> None:  # noqa: N802  the schema's name
        caller = self._session.caller or everybody()
        write_caller(context.results.init("caller"), caller.info)

    @call
    async def issueTokens_context(self, context: Any) -> None:  # noqa: N802  the schema's name
        caller = self._session.caller
        if caller is None:
            raise FailedPrecondition("this server is not protected: callers need no token")
        if caller.issue is None:
            raise PermissionDenied(
                f"caller {caller.name!r} has not shown a password, and gets no tokens for one"
            )
        write_tokens(context.results.init("tokens"), caller.issue())

    @call
    def queue_context(self, context: Any) -> Answer:
        params = context.params
        check_may_hold(self._session)
        found = self._service.queues.open_queue(
            params.name, self._session, must_exist=params.mustExist
        )

        async def answer() -> None:
            queue = await found
            rights = rights_of(self._service, self._session, ("Queue",), "queue", queue.name)
            context.results.queue = QueueHandler(self._service, queue, rights)

        return answer()

    @call
    def createQueue_context(self, context: Any) -> Answer:  # noqa: N802  the schema's name
        params = context.params
        created = self._service.queues.create_queue(
            params.name, read_settings(params.settings), self._session
        )
        return answer_with(context, "created", created)

    @call
    def configureQueue_context(self, context: Any) -> Answer:  # noqa: N802  the schema's name
        params = context.params
        return self._service.queues.configure_queue(
            params.name, read_settings(params.settings), self._session
        )

    @call
    def deleteQueue_context(self, context: Any) -> Answer:  # noqa: N802  the schema's name
        deleted = self._service.queues.delete_queue(context.params.name, self._session)
        return answer_with(context, "deleted", deleted)

    @call
    async def listQueues_context(self, context: Any) -> None:  # noqa: N802  the schema's name
        self._session.answers.check()
        params = context.params
        queues, more = self._service.queues.list_queues(params.after, params.limit, self._session)
        results = context.results
        results.more = more
        listed = results.init("queues", len(queues))
        for at, stats in enumerate(queues):
            write_stats(listed[at], stats)
        self._count(context)

    @call
    async def describe_context(self, context: Any) -> None:
        write_server_info(context.results.init("server"), self._describe())
