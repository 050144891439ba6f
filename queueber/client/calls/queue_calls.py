"""All calls of one queue."""

from queueber.client.calls.adds import AddCalls, NumberedAdds
from queueber.client.calls.callbacks import CallbackCalls
from queueber.client.calls.find import FindCalls
from queueber.client.calls.items import ItemCalls
from queueber.client.calls.leases import LeaseCalls
from queueber.client.calls.loads import LoadCalls
from queueber.client.calls.polls import PollCalls
from queueber.client.calls.results import ResultCalls
from queueber.client.calls.snapshots import SnapshotCalls
from queueber.client.transport.connection import Connection
from queueber.client.transport.link import GroupRef, QueueRef
from queueber.client.transport.remote_queue import RemoteQueue


class QueueCalls:
    """The calls of one queue. Users of the queue share this object, so their calls are batched."""

    def __init__(self, connection: Connection, name: str, ref: QueueRef | GroupRef) -> None:
        self._queue = queue = RemoteQueue(connection, ref)
        self.name = name
        self.address = connection.target.address
        self.adds = AddCalls(queue)
        self.leases = LeaseCalls(queue)
        self.polls = PollCalls(queue, self.leases)
        self.results = ResultCalls(queue)
        self.callbacks = CallbackCalls(queue)
        self.items = ItemCalls(queue)
        self.finds = FindCalls(queue)
        self.loads = LoadCalls(queue)
        self.snapshots = SnapshotCalls(queue)
        connection.senders.append(self)

    def numbered_adds(self, producer_id: str, epoch: int) -> NumberedAdds:
        """Adds of one producer. Producers share nothing."""
        return NumberedAdds(self._queue, producer_id, epoch)

    # --- when the client closes, see `Sender` -----------------------------------------------------

    def close(self) -> None:
        self.adds.batcher.close()
        self.leases.close()
        self.polls.close()

    @property
    def is_releasing(self) -> bool:
        return self.polls.is_under_way or self.leases.releases.is_busy

    def end(self) -> None:
        self.leases.releases.close()
