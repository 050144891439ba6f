"""Reads of a topic: a page of messages of one partition, and where to find one."""

from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from operator import methodcaller
from typing import Any, TypedDict

from queueber.client.arguments import values
from queueber.client.arguments.new_messages import to_partition, to_switch
from queueber.client.arguments.positions import StartAt, Time, to_position, to_time_ms
from queueber.client.arguments.topic_names import to_group_name
from queueber.client.arguments.values import Columns as ColumnNames
from queueber.client.arguments.values import Id, Seconds
from queueber.client.transport.remote_queue import RemoteQueue, filled
from queueber.errors import InvalidArgument
from queueber.limits import READ_ITEMS_MAX, SECOND_MS
from queueber.model import Position, Start
from queueber.wire.pages import Columns
from queueber.wire.topics import write_position

_WAIT_ROUND_MS = 20 * SECOND_MS
"""How long one call waits. Longer waits are several calls, so a lost connection is noticed."""


_AHEAD_MESSAGES = 1000
_AHEAD_BYTES = 1 << 20


class ReadTopicOptions(TypedDict, total=False):
    """Where to read and how much; see `Topic.read`."""

    start: StartAt
    time: Time
    last: int
    moves: bool
    group: str
    limit: int
    bytes: int
    end_offset: int
    end_time: Time
    without: ColumnNames
    tells_topic: bool


@dataclass(slots=True)
class ReadPage:
    """The answer to one read."""

    columns: Columns
    next_offset: int
    first_kept: int
    end_offset: int
    missed: int
    is_closed: bool
    content_type: str = ""
    origin: int = 0
    number: int = 0

    def parts(self, count: int | None) -> Iterator["ReadPage"]:
        """The page in parts of at most so many messages; the first tells what was missed."""
        columns = self.columns
        if count is None or columns.count <= count:
            yield self
            return
        for start in range(0, columns.count, count):
            stop = min(start + count, columns.count)
            part = columns.part(start, stop)
            yield replace(
                self,
                columns=part,
                next_offset=self.next_offset if stop == columns.count else part.next_offset,
                missed=0 if start else self.missed,
            )


def read_page(source: Any) -> ReadPage:
    return ReadPage(
        Columns(source.partition, source.messages),
        source.nextOffset,
        source.firstKept,
        source.endOffset,
        source.missed,
        source.isClosed,
        source.contentType,
        source.origin,
        source.number,
    )


@dataclass(slots=True)
class _Read:
    """A request, checked."""

    position: Position
    fields: dict[str, Any]

    def goes_on(self, offset: int) -> "_Read":
        """The same, from an offset on."""
        return _Read(Position(Start.OFFSET, offset, moves=True), self.fields | {"group": ""})

    def waits_on(self, offset: int) -> "_Read":
        """The same read, which has waited in an earlier call."""
        going_on = self.goes_on(offset)
        going_on.fields["goesOn"] = True
        return going_on

    def ahead(self) -> "_Read":
        """More than was asked for, for a program that goes through page after page: a call costs
        as much as hundreds of small messages."""
        fields = self.fields
        if fields["bytesMax"] or not 0 < fields["messagesMax"] < _AHEAD_MESSAGES:
            return self
        more = {"messagesMax": _AHEAD_MESSAGES, "bytesMax": _AHEAD_BYTES}
        return _Read(self.position, fields | more)


def to_read(
    partition: int,
    *,
    start: StartAt | None = None,
    time: Time | None = None,
    last: int | None = None,
    moves: bool = False,
    group: str | None = None,
    limit: int | None = None,
    bytes: int | None = None,
    end_offset: int | None = None,
    end_time: Time | None = None,
    without: ColumnNames = (),
    tells_topic: bool = False,
) -> _Read:
    """The fields of a request. Empty and 0 mean no condition."""
    position = to_position(start=start, time=time, last=last, moves=moves)
    if group is not None:
        to_group_name(group)
        if any(each is not None for each in (start, time, last)):
            raise InvalidArgument("group: a start was given, too; give one of the two")
        position = Position(Start.GROUP, 0, moves)
    if end_offset is not None:
        values.to_number("end_offset", end_offset, least=1, what="an offset")
    if limit is not None:
        values.to_number("limit", limit, least=1, limit=READ_ITEMS_MAX)
    if bytes is not None:
        values.to_number("bytes", bytes, least=1)
    return _Read(
        position,
        {
            "partition": to_partition(partition),
            "group": group or "",
            "messagesMax": limit or 0,
            "bytesMax": bytes or 0,
            "endOffset": end_offset or 0,
            "endMs": 0 if end_time is None else max(1, to_time_ms("end_time", end_time)),
            "without": values.to_columns(without),
            "tellsTopic": to_switch("tells_topic", tells_topic),
        },
    )


class ReadCalls:
    """All are safe to repeat."""

    def __init__(self, topic: RemoteQueue) -> None:
        self._topic = topic

    def read(self, asked: _Read, wait: Seconds) -> "Future[ReadPage]":
        wait_ms = values.to_ms("wait", wait)
        return self._topic.connection.submit(partial(self._read, asked, wait_ms))

    async def _read(self, asked: _Read, wait_ms: int) -> ReadPage:
        """Read until there are messages, or the wait is over and the end was reached."""
        time = self._topic.connection.loop.time
        give_up_at = time() + wait_ms / SECOND_MS
        missed = 0
        while True:
            round_ms = max(0, min(_WAIT_ROUND_MS, int((give_up_at - time()) * SECOND_MS)))
            send = filled("read", partial(_write_read, asked, round_ms))
            response = await self._topic.call(
                send, is_repeatable=True, wait_seconds=round_ms / SECOND_MS
            )
            page = read_page(response.resp)
            missed += page.missed
            is_over = page.is_closed and page.next_offset >= page.end_offset
            end = asked.fields["endOffset"]
            is_over = is_over or bool(end and page.next_offset >= end)
            if page.columns.count or is_over or time() + 0.001 > give_up_at:
                page.missed = missed
                return page
            # Else a second call would look for "the latest" again, and pass over messages.
            asked = asked.waits_on(page.next_offset)

    def find(self, id: Id | None, sequence: int | None) -> "Future[tuple[int, int] | None]":
        if (id is None) == (sequence is None):
            raise InvalidArgument("id: give an id or a sequence, one of the two")
        wanted = b"" if id is None else values.to_id("id", id)
        number = 0 if sequence is None else values.to_number("sequence", sequence)
        return self._topic.ask(
            methodcaller("find", wanted, number),
            lambda response: (response.partition, response.offset) if response.found else None,
        )


def _write_read(asked: _Read, wait_ms: int, request: Any) -> None:
    write_position(request.init("from"), asked.position)
    for name, value in asked.fields.items():
        setattr(request, name, value)
    request.timeoutMs = wait_ms
