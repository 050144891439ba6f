"""The results of a queue as a subscription gets them."""

from queueber.engine.queue.queue_state import QueueState
from queueber.errors import FailedPrecondition, InvalidArgument
from queueber.model import Bounds, Delivery
from queueber.service.result_messages import ResultsHandle
from queueber.service.result_topics import ResultTopics
from queueber.service.session import deleted
from queueber.service.shell import Shell


class ResultsFeed:
    """The results of a queue from where a reader is on, for a subscription."""

    def __init__(
        self, shell: Shell, topics: ResultTopics, topic: ResultsHandle, group: str, offset: int
    ) -> None:
        self._topics = topics
        self._shell = shell
        self.topic = topic
        self.group = group
        self.offset = offset

    @property
    def state(self) -> QueueState:
        return self.topic.queue.state

    def check_delivered(self, partition: int, offset: int) -> None:
        """Refuse to acknowledge what was not delivered."""
        if partition:
            raise InvalidArgument(
                f"partition: {partition} is not one of this subscription; results have only 0"
            )
        if offset > self.offset:
            raise FailedPrecondition(
                f"offset: {offset} was not delivered; this subscription is at {self.offset}",
                next=self.offset,
            )

    def check_alive(self) -> None:
        if self.state.is_deleted:
            raise deleted(self.state)

    async def next(self, messages_max: int, bytes_max: int) -> list[Delivery]:
        if self.offset >= self.topic.log.head.next_offset:
            return []
        found = self._topics.slice(self.topic, self.offset, Bounds(messages_max, bytes_max))
        self.offset = found.next_offset
        await self._shell.durable(None)
        return [Delivery(found, missed=found.missed)] if found.packed else []

    is_over = False
    look_again_ms = None

    def give_back(self) -> None:
        """Nothing is held: the next consumer goes on at the cursor."""
