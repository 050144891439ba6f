"""The results of a queue as a topic that can only be read: `queue/NAME/results`.

It has one partition, the log of results, and its groups are the readers of that log. The payload of
a message is the result, its key that of the item, and its attributes are those of the item and some
more, which begin with `queueber.`.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from queueber.engine.log import Log, block_at, reader_offset
from queueber.engine.queue.queue_state import QueueState, live_view
from queueber.engine.queue.results import ack_results, drop_reader, results_of
from queueber.errors import FailedPrecondition, InvalidArgument, NotFound, OutOfRange
from queueber.limits import READ_ITEMS_MAX
from queueber.model import (
    Bounds,
    GroupInfo,
    GroupKind,
    GroupSettings,
    MessageSlice,
    PartitionInfo,
    Position,
    Start,
    TopicConfig,
    TopicInfo,
    TopicSettings,
)
from queueber.service.consumers import Consumers
from queueber.service.queues import Queues
from queueber.service.result_messages import ResultsHandle, messages_of
from queueber.service.session import Session
from queueber.service.shell import Shell
from queueber.service.unread_answers import AnswerMemory
from queueber.service.validate.items import check_reader
from queueber.service.validate.topics import check_group_settings, check_no_group
from queueber.service.waiting import keep_looking


class ResultTopics:
    def __init__(self, shell: Shell, queues: Queues, consumers: Consumers) -> None:
        self._consumers = consumers
        self._shell = shell
        self._queues = queues
        self.consumers: Callable[[QueueState, str], Sequence[str]] = lambda _queue, _group: ()
        """Set by the subscriptions: the names of the consumers of a group."""

    def open(self, queue: str, session: Session) -> ResultsHandle:
        return ResultsHandle(self._queues.handle(queue, session))

    # --- reading ----------------------------------------------------------------------------------

    def read(
        self,
        topic: ResultsHandle,
        partition: int,
        position: Position,
        bounds: Bounds,
        *,
        group: str = "",
        wait_ms: int = 0,
        memory: AnswerMemory | None = None,
        tells_topic: bool = False,
        goes_on: bool = False,
    ) -> Awaitable[MessageSlice]:
        """Results have no content type and no origin, and reading them is no use of anything."""
        topic.queue.check_alive()
        _check_partition(topic, partition)
        check_no_group(position, group)
        offset, missed = self.start(topic, position, group)

        def look() -> tuple[MessageSlice, bool]:
            topic.queue.check_alive()
            if memory is not None:
                memory.check()
            found = self.slice(topic, offset, bounds)
            found.missed += missed
            if memory is not None:
                memory.take(sum(len(each.payloads) for each in found.packed))
            is_over = bool(bounds.end_offset and offset >= bounds.end_offset)
            return found, bool(found.packed) or is_over or found.next_offset < found.end_offset

        return self._wait(topic, look, wait_ms)

    async def _wait(self, topic: ResultsHandle, look: Any, wait_ms: int) -> MessageSlice:
        shell, key = self._shell, (topic.queue.state.queue_id, None)
        found: MessageSlice = await keep_looking(
            shell, topic.session, key, look, look(), wait_ms=wait_ms
        )
        return await shell.durable(found)

    def start(self, topic: ResultsHandle, position: Position, group: str = "") -> tuple[int, int]:
        """The offset of a position, and how many results from there on are deleted already."""
        head, value = topic.log.head, position.value
        first, end = head.first_offset, head.next_offset
        match position.start:
            case Start.EARLIEST:
                return first, 0
            case Start.LATEST:
                return end, 0
            case Start.LAST:
                return max(first, end - value), 0
            case Start.TIME:
                return self._offset_at(topic.log, value), 0
            case Start.GROUP:
                check_reader(group)
                return reader_offset(topic.log, group), 0
        if first <= value <= end:
            return value, 0
        if not position.moves:
            raise OutOfRange(
                f"offset is {value}; topic {topic.name!r} has messages from {first} up to {end}",
                first=first,
                next=end,
            )
        return (first, first - value) if value < first else (end, 0)

    def _offset_at(self, log: Log, at_ms: int) -> int:
        """The offset of the first result at that time or later."""
        low, high = log.head.first_offset, log.head.next_offset
        while low < high:
            block = block_at(self._shell.engine.store, log.prefix, (low + high) // 2)
            if block.appended_at_ms >= at_ms:
                high = max(block.first_offset, low)
            else:
                low = block.end_offset
        return low

    def slice(self, topic: ResultsHandle, offset: int, bounds: Bounds) -> MessageSlice:
        """Results from an offset on. Some may not be durable yet."""
        shell, state = self._shell, topic.queue.state
        bytes_max = shell.limits.answer_bytes_max
        found = results_of(
            live_view(shell.engine.store, state),
            offset,
            min(bounds.messages, READ_ITEMS_MAX) or READ_ITEMS_MAX,
            min(bounds.bytes, bytes_max) or bytes_max,
            before=bounds.end_offset,
            without=frozenset(),
        )
        results, next_offset = found.results, found.next_offset
        if bounds.end_ms:
            kept = [each for each in results if each.completed_at_ms < bounds.end_ms]
            next_offset = next_offset if len(kept) == len(results) else results[len(kept)].offset
            results = kept
        head = state.results.head
        return MessageSlice(
            0, messages_of(results), next_offset, head.first_offset, head.next_offset, found.missed
        )

    # --- what there is ----------------------------------------------------------------------------

    def describe(self, topic: ResultsHandle) -> TopicInfo:
        topic.queue.check_alive()
        state, head = topic.queue.state, topic.log.head
        settings = TopicSettings(
            retention_ms=state.settings.result_age_ms,
            retention_bytes=state.settings.result_bytes_max,
        )
        partition = PartitionInfo(
            head.first_offset, head.next_offset, head.kept_bytes, head.oldest_ms, head.last_ms
        )
        return TopicInfo(
            topic.name,
            TopicConfig(settings),
            state.created_at_ms,
            [partition],
            is_closed=False,
            is_deleted=False,
            forks=0,
            parent="",
            groups=sorted(topic.log.readers),
            expires_at_ms=0,
            updated_at_ms=state.created_at_ms,
        )

    def list_groups(self, topic: ResultsHandle) -> list[GroupInfo]:
        topic.queue.check_alive()
        return [self._info(topic, name) for name in sorted(topic.log.readers)]

    def describe_group(self, topic: ResultsHandle, name: str) -> GroupInfo:
        topic.queue.check_alive()
        check_reader(name)
        self.check_known(topic, name)
        return self._info(topic, name)

    def check_known(self, topic: ResultsHandle, name: str) -> None:
        if name not in topic.log.readers:
            raise NotFound(
                f"topic {topic.name!r} has no group {name!r}; create it, or check the name"
            )

    def _info(self, topic: ResultsHandle, name: str) -> GroupInfo:
        head = topic.log.head
        cursor = max(topic.log.readers[name], head.first_offset)
        lag = head.next_offset - cursor
        lag_ms = 0
        if lag:
            block = block_at(self._shell.engine.store, topic.log.prefix, cursor)
            lag_ms = max(0, self._shell.clock.now_ms() - block.appended_at_ms)
        consumers = self.consumers(topic.queue.state, name)
        return GroupInfo(name, GroupSettings(), 0, 0, [cursor], lag, lag_ms, 0, 0, consumers)

    # --- groups -----------------------------------------------------------------------------------

    def create_group(
        self, topic: ResultsHandle, name: str, settings: GroupSettings, at: Position
    ) -> Awaitable[bool]:
        """Whether it is new; one that exists stays where it is."""
        return self._shell.durable(self.create(topic, name, settings, at))

    def create(
        self, topic: ResultsHandle, name: str, settings: GroupSettings, at: Position
    ) -> bool:
        """As `create_group`, without waiting until it is durable."""
        queue = topic.queue
        queue.check_alive()
        check_reader(name)
        check_group_settings(settings, self._shell.limits.item_bytes_max)
        if settings.kind is not GroupKind.ORDERED:
            raise FailedPrecondition(
                f"kind: {settings.kind.value!r}; groups of the results of a queue are ordered"
            )
        if name in topic.log.readers:
            return False
        offset, _ = self.start(topic, at)
        self._shell.write_gathered(queue.state)
        self._shell.run(queue.state, ack_results, name, offset)
        self._shell.after_write(queue.state)
        return True

    def delete_group(self, topic: ResultsHandle, name: str) -> Awaitable[bool]:
        check_reader(name)
        return self._shell.write(topic.queue, drop_reader, name, event="reader_dropped")

    def ack(self, topic: ResultsHandle, name: str, partition: int, offset: int) -> Awaitable[int]:
        """Where the cursor is then: it never goes back."""
        topic.queue.check_alive()
        check_reader(name)
        _check_partition(topic, partition)
        self.check_known(topic, name)
        self._consumers.check(topic.session, topic.queue.state, name, partition)
        return self.acknowledge(topic, name, offset)

    def acknowledge(self, topic: ResultsHandle, name: str, offset: int) -> Awaitable[int]:
        cursor = reader_offset(topic.log, name)
        if offset <= cursor:
            return self._shell.durable(cursor)
        done = self._shell.write(topic.queue, ack_results, name, offset, event="acknowledged")
        return _then(done, offset)


async def _then(done: Awaitable[object], answer: int) -> int:
    await done
    return answer


def _check_partition(topic: ResultsHandle, partition: int) -> None:
    if partition:
        raise InvalidArgument(f"partition is {partition}; topic {topic.name!r} has only 0")
