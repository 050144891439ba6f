"""The calls of each queue, by subject. They run on the core's loop; faces may be elsewhere."""

from threading import Lock

from queueber.client.adding import AddCalls
from queueber.client.arguments import to_name
from queueber.client.caller import Caller
from queueber.client.core import Core
from queueber.client.loading import LoadCalls
from queueber.client.numbering import NumberedAdds
from queueber.client.operating import OperateCalls
from queueber.client.outcomes import OutcomeCalls
from queueber.client.polling import PollCalls
from queueber.client.reading import ReadCalls
from queueber.client.snapshotting import SnapshotCalls


class QueueCalls:
    """One queue over one core. All clients of a core share it, so that their calls are joined."""

    def __init__(self, core: Core, name: str, *, must_exist: bool) -> None:
        self._caller = Caller(core, name, must_exist=must_exist)
        self.name = name
        self.adds = AddCalls(self._caller)
        self.outcomes = OutcomeCalls(self._caller)
        self.polls = PollCalls(self._caller, self.outcomes)
        self.reads = ReadCalls(self._caller)
        self.operates = OperateCalls(self._caller)
        self.loads = LoadCalls(self._caller)
        self.snapshots = SnapshotCalls(self._caller)
        core.sharers.append(self)

    def numbered_adds(self, producer_id: str, epoch: int) -> NumberedAdds:
        """Adds of a producer. Each is on its own: producers share nothing."""
        return NumberedAdds(self._caller, producer_id, epoch)

    # --- when the client closes, see `Sharer` -----------------------------------------------------

    def close(self) -> None:
        self.adds.lane.close()
        self.outcomes.close()
        self.polls.close()

    @property
    def is_giving_back(self) -> bool:
        return self.polls.is_under_way or self.outcomes.is_releasing

    def end(self) -> None:
        self.outcomes.end()


class CallsByQueue:
    """The calls of each queue, the same for all who ask for it, so that they are joined."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._calls: dict[tuple[str, bool], QueueCalls] = {}
        self._lock = Lock()

    def of(self, name: str, *, must_exist: bool) -> QueueCalls:
        key = to_name(name), bool(must_exist)
        with self._lock:
            if key not in self._calls:
                self._calls[key] = QueueCalls(self._core, name, must_exist=key[1])
            return self._calls[key]
