"""The calls of each queue, by subject. They run on the core's loop; faces may be elsewhere."""

from threading import Lock
from typing import Any

from queueber.client.adding import AddCalls
from queueber.client.arguments import to_name
from queueber.client.caller import Caller
from queueber.client.core import Core
from queueber.client.lane import Lane
from queueber.client.numbering import NumberedAdds
from queueber.client.operating import OperateCalls
from queueber.client.outcomes import OutcomeCalls
from queueber.client.polling import PollCalls
from queueber.client.reading import ReadCalls


class QueueCalls:
    """One queue over one core. All clients of a core share it, so that their calls are joined."""

    def __init__(self, core: Core, name: str) -> None:
        self._caller = Caller(core, name)
        self.name = name
        self.adds = AddCalls(self._caller)
        self.outcomes = OutcomeCalls(self._caller)
        self.polls = PollCalls(self._caller, self.outcomes)
        self.reads = ReadCalls(self._caller)
        self.operates = OperateCalls(self._caller)
        core.on_close.append(self._close)

    def numbered_adds(self, producer_id: str, epoch: int) -> NumberedAdds:
        """Adds of a producer. Each is on its own: producers share nothing."""
        return NumberedAdds(self._caller, producer_id, epoch)

    def _close(self) -> None:
        lanes: list[Lane[Any]] = [self.adds.lane, *self.outcomes.lanes, *self.polls.lanes.values()]
        for lane in lanes:
            lane.close()


class CallsByQueue:
    """The calls of each queue, the same for all who ask for it, so that they are joined."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._calls: dict[str, QueueCalls] = {}
        self._lock = Lock()

    def __getitem__(self, name: str) -> QueueCalls:
        to_name(name)
        with self._lock:
            if name not in self._calls:
                self._calls[name] = QueueCalls(self._core, name)
            return self._calls[name]
