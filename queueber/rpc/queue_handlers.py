"""The capability of one queue, or of a shared group of a topic."""

from queueber.rpc.bulk_handlers import LoadMethods, SnapshotMethods
from queueber.rpc.callback_handlers import CallbackMethods
from queueber.rpc.calls import refuse_methods
from queueber.rpc.item_handlers import ItemMethods
from queueber.rpc.operator_handlers import OperatorMethods
from queueber.rpc.result_handlers import ResultMethods
from queueber.rpc.rights import Rights
from queueber.schema import wire
from queueber.service.service import Service
from queueber.service.session import QueueHandle


class AllQueueMethods(
    ItemMethods, ResultMethods, CallbackMethods, OperatorMethods, LoadMethods, SnapshotMethods
):
    """Every method of a queue."""


class QueueHandler(AllQueueMethods, wire.Queue.Server):  # type: ignore[misc]  # capnp is untyped
    """The capability of one queue, for one connection. Ends when its caller lets go of it."""

    def __init__(self, service: Service, queue: QueueHandle, rights: Rights | None) -> None:
        super().__init__(service, queue, rights)
        queue.session.queues += 1

    def __del__(self) -> None:
        self._session.queues -= 1


class GroupQueueHandler(QueueHandler):
    """A shared group as a queue: whatever is about items, results or loads is refused."""


_NOT_OF_GROUPS = (
    "add", "complete", "receipt", "waitBatch", "listBatches", "readResults", "ackResults",
    "dropReader", "listReaders", "cancel", "beginLoad", "stageFile", "finishPart", "commitLoad",
    "abortLoad", "listLoads", "openSnapshot", "scanSnapshot", "closeSnapshot", "splitSnapshot",
    "forgetBatch", "forgetBatches", "whenComplete", "callback",
    "findItem", "cancelKey", "cancelBatch", "reschedule",
)  # fmt: skip


def _not_of_groups(self: GroupQueueHandler, method: str) -> str:
    return (
        f"{self._queue.name!r} is a group of a topic, which has no {method!r}; publish to the "
        "topic, and poll, extend, remove, fail, release, peek or redrive here"
    )


refuse_methods(GroupQueueHandler, _NOT_OF_GROUPS, _not_of_groups)
