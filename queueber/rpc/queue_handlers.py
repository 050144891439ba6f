"""The capability of one queue, or of a shared group of a topic."""

from queueber.rpc.bulk_handlers import LoadMethods, SnapshotMethods
from queueber.rpc.item_handlers import ItemMethods
from queueber.rpc.operator_handlers import OperatorMethods
from queueber.rpc.result_handlers import ResultMethods
from queueber.schema import wire
from queueber.service.service import Service
from queueber.service.session import QueueHandle


class AllQueueMethods(ItemMethods, ResultMethods, OperatorMethods, LoadMethods, SnapshotMethods):
    """Every method of a queue."""


class QueueHandler(AllQueueMethods, wire.Queue.Server):  # type: ignore[misc]  # capnp is untyped
    """The capability of one queue, for one connection. Ends when its caller lets go of it."""

    def __init__(self, service: Service, queue: QueueHandle) -> None:
        super().__init__(service, queue)
        queue.session.queues += 1

    def __del__(self) -> None:
        self._session.queues -= 1
