"""The messages of partitions in order, as a subscription gets them."""

from collections.abc import Sequence

from queueber.engine.topics import groups
from queueber.engine.topics.group import Group
from queueber.engine.topics.topic_state import TopicState
from queueber.errors import FailedPrecondition, InvalidArgument, NotFound
from queueber.model import Bounds, Delivery
from queueber.service.reads import Reads
from queueber.service.shell import Shell
from queueber.service.topic_handle import check_topic_alive


class LogFeed:
    """The messages of some partitions from an offset of each on, one partition after the other.

    Of an ordered group it begins at the cursor; without a group it remembers only in memory how far
    it is.
    """

    def __init__(
        self,
        shell: Shell,
        reads: Reads,
        topic: TopicState,
        group: Group | None,
        partitions: Sequence[int],
        starts: dict[int, tuple[int, int]],
    ) -> None:
        """`partitions` is empty for all, also for those that are added later. `starts` has for each
        the offset, and how many messages before it were missed."""
        self._shell = shell
        self._reads = reads
        self.topic = topic
        self.group = group
        self._partitions = partitions
        self._offsets = {each: offset for each, (offset, _) in starts.items()}
        self._missed = {each: missed for each, (_, missed) in starts.items()}
        """Messages that were deleted, and that no delivery has told of yet."""
        self._turn = 0

    @property
    def partitions(self) -> Sequence[int]:
        return self._partitions or range(self.topic.partitions)

    def offset(self, partition: int) -> int:
        """Up to where a partition was delivered."""
        found = self._offsets.get(partition)
        if found is None:  # a partition that was added since
            found = self._offsets[partition] = self._cursor(partition)
        return found

    def _cursor(self, partition: int) -> int:
        return 0 if self.group is None else groups.cursor(self.topic, self.group, partition)

    def check_delivered(self, partition: int, offset: int) -> None:
        """Refuse to acknowledge what was not delivered."""
        if partition not in self.partitions:
            own = ", ".join(map(str, self._partitions)) or f"0 to {self.topic.partitions - 1}"
            raise InvalidArgument(
                f"partition: {partition} is not one of this subscription, which has {own}"
            )
        if offset > self.offset(partition):
            raise FailedPrecondition(
                f"offset: {offset} was not delivered; this subscription is at "
                f"{self.offset(partition)} of partition {partition}",
                next=self.offset(partition),
            )

    def moved(self, partition: int | None) -> None:
        """The group was reset, in one partition or in all: go on at its cursors."""
        for each in self.partitions:
            if partition is None or each == partition:
                self._offsets[each] = self._cursor(each)
                self._missed[each] = 0

    # --- as a feed --------------------------------------------------------------------------------

    def check_alive(self) -> None:
        check_topic_alive(self.topic, self._shell.clock.now_ms())
        if self.group is not None:
            check_group_alive(self.topic, self.group)

    async def next(self, messages_max: int, bytes_max: int) -> list[Delivery]:
        topic, now_ms = self.topic, self._shell.clock.now_ms()
        if self.group is not None and self.group.is_paused(now_ms):
            return []
        partitions = self.partitions
        bounds = Bounds(messages_max, bytes_max)
        for _ in partitions:
            self._turn = (self._turn + 1) % len(partitions)
            partition = partitions[self._turn]
            offset = self.offset(partition)
            if offset >= topic.next_offset(partition):
                continue
            found = self._reads.slice(topic, partition, offset, bounds)
            self._offsets[partition] = found.next_offset
            missed = self._missed.get(partition, 0) + found.missed
            self._missed[partition] = 0 if found.packed else missed
            if found.packed:
                if topic.use(now_ms):
                    self._shell.run(None, topic.note_use)
                return [Delivery(found, missed=missed)]
        return []

    @property
    def is_over(self) -> bool:
        topic = self.topic
        return topic.record.is_closed and all(
            self.offset(each) >= topic.next_offset(each) and self._reads.is_durable(topic, each)
            for each in self.partitions
        )

    @property
    def look_again_ms(self) -> int | None:
        group = self.group
        if group is not None and group.is_paused(self._shell.clock.now_ms()):
            return group.record.paused_until_ms
        return None

    def give_back(self) -> None:
        """Nothing is held: the next consumer goes on at the cursor."""


def check_group_alive(topic: TopicState, group: Group) -> None:
    if topic.groups.get(group.name) is not group:
        raise NotFound(f"group {group.name!r} of topic {topic.name!r} was deleted")
