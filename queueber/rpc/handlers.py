"""The capabilities that a connection is given: the bootstrap object, and queues by name."""

import contextlib
from collections.abc import Callable
from typing import Any

from queueber.engine.kernel.state import QueueState
from queueber.errors import InvariantViolation, QueueberError, ResourceExhausted
from queueber.limits import CONNECTION_QUEUES_MAX
from queueber.model import ServerInfo
from queueber.rpc.calls import Answer, call
from queueber.rpc.item_handlers import ItemMethods
from queueber.rpc.load_handlers import LoadMethods
from queueber.rpc.operating_handlers import OperatingMethods
from queueber.rpc.result_handlers import ResultMethods
from queueber.rpc.snapshot_handlers import SnapshotMethods
from queueber.schema import wire
from queueber.service.connection import Connection
from queueber.service.service import Service
from queueber.wire.queues import read_settings, write_server_info, write_stats


class _AllMethods(ItemMethods, ResultMethods, OperatingMethods, LoadMethods, SnapshotMethods):
    """Every method of a queue."""


class QueueHandler(_AllMethods, wire.Queue.Server):  # type: ignore[misc]  # capnp is untyped
    """The capability of one queue, for one connection. Ends when its caller lets go of it."""

    def __init__(
        self,
        service: Service,
        queue: QueueState,
        connection: Connection,
        on_crash: Callable[[BaseException], None],
    ) -> None:
        super().__init__(service, queue, connection, on_crash)
        connection.queues += 1

    def __del__(self) -> None:
        self._connection.queues -= 1


class ServiceHandler(_AllMethods, wire.Service.Server):  # type: ignore[misc]  # capnp is untyped
    """The bootstrap object of one connection. Used as a queue, it is the default one."""

    def __init__(
        self,
        service: Service,
        connection: Connection,
        on_crash: Callable[[BaseException], None],
        info: ServerInfo,
    ) -> None:
        super().__init__(service, service.default_queue, connection, on_crash)
        self._info = info

    def connection_ended(self) -> None:
        """Give back the leases that are bound to the connection."""
        # If the store cannot write any more, they end when they expire.
        with contextlib.suppress(QueueberError):
            try:
                self._service.connection_ended(self._connection)
            except InvariantViolation as error:
                self._on_crash(error)

    @call
    def queue_context(self, context: Any) -> Answer:
        params = context.params
        if self._connection.queues >= CONNECTION_QUEUES_MAX:
            raise ResourceExhausted(
                f"this connection holds {self._connection.queues} queues, the limit; let go of some"
            )
        found = self._service.queue(params.name, must_exist=params.mustExist)

        async def answer() -> None:
            context.results.queue = QueueHandler(
                self._service, await found, self._connection, self._on_crash
            )

        return answer()

    @call
    def createQueue_context(self, context: Any) -> Answer:  # noqa: N802  the schema's name
        params = context.params
        created = self._service.create_queue(params.name, read_settings(params.settings))

        async def answer() -> None:
            context.results.created = await created

        return answer()

    @call
    def configureQueue_context(self, context: Any) -> Answer:  # noqa: N802  the schema's name
        params = context.params
        configured = self._service.configure_queue(params.name, read_settings(params.settings))

        async def answer() -> None:
            await configured

        return answer()

    @call
    def deleteQueue_context(self, context: Any) -> Answer:  # noqa: N802  the schema's name
        deleted = self._service.delete_queue(context.params.name)

        async def answer() -> None:
            context.results.deleted = await deleted

        return answer()

    @call
    async def listQueues_context(self, context: Any) -> None:  # noqa: N802  the schema's name
        self._connection.outbox.check()
        params = context.params
        queues, more = self._service.list_queues(params.after, params.limit)
        results = context.results
        results.more = more
        listed = results.init("queues", len(queues))
        for at, stats in enumerate(queues):
            write_stats(listed[at], stats)
        self._count(context)

    @call
    async def describe_context(self, context: Any) -> None:
        write_server_info(context.results.init("server"), self._info)
