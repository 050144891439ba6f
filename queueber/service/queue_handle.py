"""A queue as one caller holds it: what adapters keep, and give to every verb."""

from dataclasses import dataclass

from queueber.engine.queue.queue_state import QueueState
from queueber.errors import NotFound
from queueber.service.session import Session


@dataclass(frozen=True, slots=True)
class QueueHandle:
    state: QueueState
    """For the service alone. It stays the same when the queue is deleted and created anew."""
    session: Session

    @property
    def name(self) -> str:
        return self.state.name

    def check_alive(self) -> None:
        if self.state.is_deleted:
            raise deleted(self.state)


def deleted(queue: QueueState) -> NotFound:
    return NotFound(f"queue {queue.name!r} was deleted; ask for it again to create it anew")
