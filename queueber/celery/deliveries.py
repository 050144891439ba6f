"""Messages on their way from the threads that fetch them to the one that drains events."""

import threading
from collections import deque
from dataclasses import dataclass

from queueber.celery.messages import RawMessage
from queueber.clock import seconds


@dataclass(frozen=True, slots=True)
class Delivery:
    queue: str
    message: RawMessage


class Deliveries:
    """What has arrived for the consumers of one connection, in order."""

    def __init__(self) -> None:
        self._arrived: deque[Delivery | Exception] = deque()
        self._condition = threading.Condition()

    def put(self, arrived: Delivery | Exception) -> None:
        with self._condition:
            self._arrived.append(arrived)
            self._condition.notify()

    def get(self, timeout: float | None) -> Delivery:
        """The next one; TimeoutError if none comes in time. Raises what a fetching thread met."""
        give_up_at = None if timeout is None else seconds() + timeout
        with self._condition:
            while not self._arrived:
                left = None if give_up_at is None else give_up_at - seconds()
                if left is not None and left <= 0:
                    raise TimeoutError
                self._condition.wait(left)
            arrived = self._arrived.popleft()
        if isinstance(arrived, Exception):
            raise arrived
        return arrived

    def take_back(self, queue: str) -> list[RawMessage]:
        """The messages of a queue that were not drained: its consumer was cancelled."""
        with self._condition:
            kept: deque[Delivery | Exception] = deque()
            taken = []
            for each in self._arrived:
                if isinstance(each, Delivery) and each.queue == queue:
                    taken.append(each.message)
                else:
                    kept.append(each)
            self._arrived = kept
        return taken
