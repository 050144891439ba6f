"""All calls of one client, by queue and by subject."""

from threading import Lock

from queueber.client.arguments.values import to_name
from queueber.client.calls.adds import AddCalls
from queueber.client.calls.items import ItemCalls
from queueber.client.calls.leases import LeaseCalls
from queueber.client.calls.loads import LoadCalls
from queueber.client.calls.numbered_adds import NumberedAdds
from queueber.client.calls.polls import PollCalls
from queueber.client.calls.remote_queue import RemoteQueue
from queueber.client.calls.results import ResultCalls
from queueber.client.calls.server import ServerCalls
from queueber.client.calls.snapshots import SnapshotCalls
from queueber.client.transport.connection import Connection


class QueueCalls:
    """The calls of one queue. Users of the queue share this object, so their calls are batched."""

    def __init__(self, connection: Connection, name: str, *, must_exist: bool) -> None:
        self._queue = queue = RemoteQueue(connection, name, must_exist=must_exist)
        self.name = name
        self.address = connection.address
        self.adds = AddCalls(queue)
        self.leases = LeaseCalls(queue)
        self.polls = PollCalls(queue, self.leases)
        self.results = ResultCalls(queue)
        self.items = ItemCalls(queue)
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
        return self.polls.is_under_way or self.leases.is_releasing

    def end(self) -> None:
        self.leases.end()


class ClientCalls:
    """The calls of one client: those of the server, and those of each queue."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.server = ServerCalls(connection)
        self._queues: dict[tuple[str, bool], QueueCalls] = {}
        self._lock = Lock()

    def of_queue(self, name: str, *, must_exist: bool) -> QueueCalls:
        """The same object for all who ask for the queue, so that their calls are batched."""
        key = to_name(name), bool(must_exist)
        with self._lock:
            if key not in self._queues:
                self._queues[key] = QueueCalls(self.connection, name, must_exist=key[1])
            return self._queues[key]
