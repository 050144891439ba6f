"""What a read of a stream found: its bytes as they are sent, and where the stream goes on."""

from queueber.client import AsyncTopic, MessagePage
from queueber.errors import OutOfRange
from queueber.gateway.problems import Problem, invalid
from queueber.gateway.streams.content import DEFAULT_TYPE, as_event_data, is_json, joined
from queueber.gateway.streams.tokens import Place, gone, token
from queueber.limits import KIB, MIB, READ_ITEMS_MAX
from queueber.model import Column, PackedContents, Position, Start

ANSWER_BYTES = 4 * MIB + 64 * KIB
"""Of one answer: four messages of a MiB, and what they count beyond their bytes. One message is
always sent, however large it is."""
EVENT_BYTES = 256 * KIB
"""Of one event: what a reader of a live stream holds."""
_NOT_NEEDED = (Column.KEYS, Column.ATTRIBUTES)


class Found:
    """The messages of one read. It may be sent to many readers, so what is sent is made once."""

    __slots__ = (
        "_body", "_events", "_payloads", "content_type", "count", "is_closed", "is_up_to_date",
        "next_offset", "number", "origin", "start",
    )  # fmt: skip

    def __init__(self, page: MessagePage, start: int) -> None:
        self._payloads = page.columns.payloads
        self.count = page.columns.count
        self.start = start
        self.next_offset = page.next_offset
        self.is_up_to_date = page.is_at_end
        """Whether this was all that there is."""
        self.is_closed = page.is_closed and page.is_at_end
        """Whether nothing will come after this."""
        self.content_type = page.content_type or DEFAULT_TYPE
        self.origin = page.origin
        self.number = page.number
        self._body: bytes | None = None
        self._events: tuple[int, bytes] | None = None

    @property
    def token(self) -> bytes:
        """Where the next read begins."""
        return token(self.origin, self.next_offset)

    @property
    def body(self) -> bytes:
        """One JSON array, or the bytes one after the other."""
        if self._body is None:
            payloads = self._payloads
            if isinstance(payloads, PackedContents) and not is_json(self.content_type):
                self._body = payloads.joined
            else:
                self._body = joined(self.content_type, list(payloads))
            self._payloads = ()
        return self._body

    @property
    def after(self) -> Place:
        """Where the next read goes on."""
        return Place(Position(Start.OFFSET, self.next_offset), self.origin)

    def same_stream_as(self, before: "Found") -> "Found":
        """This, which was read after another; raises a `Problem` if the stream was deleted
        meanwhile, and created again: reads go by its path."""
        if self.number != before.number:
            raise gone("stream: it was deleted, and another one has its path; begin again with -1")
        return self

    # --- server-sent events -----------------------------------------------------------------------

    def events(self, cursor: int) -> bytes:
        """A data event, if there is data, and the control event that follows every one."""
        if self._events is None or self._events[0] != cursor:
            self._events = cursor, self._data_event() + self.control_event(cursor)
        return self._events[1]

    def taken_events(self, cursor: int) -> bytes:
        """The same, of what one reader alone has read: its bytes are not kept here as well."""
        events = self.events(cursor)
        self._body, self._events, self._payloads = b"", (cursor, b""), ()
        return events

    def _data_event(self) -> bytes:
        if not self.count:
            return b""
        return b"event: data\n" + as_event_data(self.content_type, self.body) + b"\n"

    def control_event(self, cursor: int) -> bytes:
        control = b'{"streamNextOffset":"%b"' % self.token
        if self.is_closed:
            control += b',"streamClosed":true'
        else:
            control += b',"streamCursor":"%d"' % cursor
        if self.is_up_to_date:
            control += b',"upToDate":true'
        return b"event: control\ndata:" + control + b"}\n\n"


async def read(
    topic: AsyncTopic, place: Place, *, bytes_max: int, wait_seconds: float = 0.0
) -> Found:
    """Read from a place on; raises a `Problem` if it is not in the stream any more, or not yet."""
    position = place.position
    try:
        page = await topic.read(
            0,
            start=position,
            limit=READ_ITEMS_MAX,
            bytes=bytes_max,
            without=_NOT_NEEDED,
            tells_topic=True,
            wait=wait_seconds,
        )
    except OutOfRange as error:
        raise await not_there(topic, place, error) from None
    is_offset = position.start is Start.OFFSET
    start = position.value if is_offset else page.next_offset - page.columns.count
    return Found(page, start)


async def not_there(topic: AsyncTopic, place: Place, error: OutOfRange) -> Problem:
    """Why nothing can be read at a place. One of a deleted stream may lie anywhere beside the
    messages of the stream that has its path now."""
    if place.origin:
        page = await topic.read(0, start=Position(Start.LATEST), limit=1, tells_topic=True)
        place.check_origin(page.origin)
    if place.offset < error.numbers.get("first", 0):
        return gone("offset: what was there is deleted; begin again with -1")
    return invalid("offset: the stream does not reach so far")
