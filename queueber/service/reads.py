"""Reads: messages of a partition from a position on, waiting for the first if there is none."""

from collections.abc import Awaitable
from dataclasses import replace

from queueber.engine.topics.groups import cursor, get_group
from queueber.engine.topics.read import read, start_of
from queueber.engine.topics.topic_state import TopicState
from queueber.limits import READ_ITEMS_MAX
from queueber.model import Bounds, MessageSlice, Position, Start
from queueber.service.durable_ends import DurableEnds
from queueber.service.publish import Publishing
from queueber.service.shell import Shell
from queueber.service.topic_handle import TopicHandle, check_topic_alive
from queueber.service.topics import Topics
from queueber.service.unread_answers import AnswerMemory
from queueber.service.validate.topics import check_group_name, check_no_group
from queueber.service.waiting import keep_looking


class Reads:
    def __init__(
        self, shell: Shell, topics: Topics, publishing: Publishing, ends: DurableEnds
    ) -> None:
        self._shell = shell
        self._topics = topics
        self._publishing = publishing
        self._ends = ends

    def read(
        self,
        topic: TopicHandle,
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
        """Messages up to the bounds, and no more than the server allows.

        A read is one use of its topic, when it begins: neither waiting nor a call that `goes_on`
        with the wait of an earlier one is another.

        With none there it waits, unless none can come: at an end that the bounds set, or in a
        closed topic.
        """
        shell = self._shell
        self._publishing.written_first(topic.session)
        state = topic.state if goes_on else self._topics.alive(topic)
        offset, missed = self._start(state, partition, position, group)
        cut = self.cut(bounds)

        def look() -> tuple[MessageSlice, bool]:
            check_topic_alive(state, shell.clock.now_ms())
            if memory is not None:
                memory.check()
            found = self.slice(state, partition, offset, cut)
            found.missed += missed
            if tells_topic:
                found.content_type = state.record.content_type
                if state.partitions == 1:
                    found.origin = shell.engine.topics.origin(state)
                found.number = state.queue_id
            if memory is not None:
                memory.take(sum(len(each.payloads) for each in found.packed))
            is_over = found.is_closed or bool(cut.end_offset and offset >= cut.end_offset)
            return found, bool(found.packed) or is_over or found.next_offset < found.end_offset

        return keep_looking(shell, topic.session, state, look, look(), wait_ms=wait_ms)

    def _start(
        self, state: TopicState, partition: int, position: Position, group: str
    ) -> tuple[int, int]:
        """The offset to read from, and how many messages were missed before it."""
        if position.start is Start.GROUP:
            check_group_name(group)
            found = get_group(state, group)
            return cursor(state, found, partition), 0
        check_no_group(position, group)
        offset, missed = start_of(self._shell.engine.store, state, partition, position)
        end = self._ends.end(state, partition)
        is_asked = position.start is Start.OFFSET and offset == position.value
        if end is None or end >= offset or is_asked:
            return offset, missed
        return end, max(0, missed - (offset - end))

    def is_durable(self, state: TopicState, partition: int) -> bool:
        """Whether all that was written to a partition is durable."""
        return self._ends.end(state, partition) is None

    def cut(self, bounds: Bounds) -> Bounds:
        """The bounds, and those of the server."""
        bytes_max = self._shell.limits.slice_bytes_max
        return Bounds(
            min(bounds.messages, READ_ITEMS_MAX) or READ_ITEMS_MAX,
            min(bounds.bytes, bytes_max) or bytes_max,
            bounds.end_offset,
            bounds.end_ms,
        )

    def slice(self, state: TopicState, partition: int, offset: int, bounds: Bounds) -> MessageSlice:
        """What is durable from an offset on. Messages that were deleted meanwhile are missed."""
        first, end = state.first_offset(partition), self._ends.end(state, partition)
        if end is not None:
            first = min(
                first, end
            )  # offsets behind it may be given to other messages after a crash
        missed = max(0, first - offset)
        offset += missed
        if end is not None:
            bounds = replace(bounds, end_offset=min(end, bounds.end_offset or end))
        if end is not None and end <= offset:
            found = MessageSlice(partition, [], offset, first, end)
        else:
            found = read(self._shell.engine.store, state, partition, offset, bounds)
        found.missed = missed
        if end is not None:
            found.end_offset = end
            found.is_closed = False
        return found
