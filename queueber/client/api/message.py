"""Messages as they are read, and pages of them."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import count as count_from
from itertools import repeat
from typing import Any

from queueber.client.calls.consumes import Window, references
from queueber.client.calls.reads import ReadPage
from queueber.ids import ItemId, shifted
from queueber.limits import SECOND_MS
from queueber.model import PackedMessages
from queueber.wire.pages import Columns, Piece

_SHOWN_BYTES = 40


class Message:
    """A message of a topic. All but offset and payload is decoded when it is asked for.

    A page may have thousands of these, so each is little more than a place in the page.
    """

    __slots__ = ("_at", "_columns", "_piece", "offset", "payload")

    offset: int
    payload: bytes

    def __init__(
        self, payload: bytes, offset: int, at: int, piece: Piece, columns: Columns
    ) -> None:
        self.payload = payload
        self.offset = offset
        self._at = at
        self._piece = piece
        self._columns = columns

    @property
    def partition(self) -> int:
        return self._columns.partition

    @property
    def key(self) -> str:
        """ "" if it has none."""
        return self._columns.key(self._at)

    @property
    def attributes(self) -> Mapping[str, str]:
        """Metadata, as it was published."""
        return self._columns.attributes_of(self._at)

    @property
    def id(self) -> bytes:
        """A UUIDv7; no other message has it."""
        return shifted(ItemId(self._piece.id), self.offset - self._piece.offset)

    @property
    def sequence(self) -> int:
        """Rises over all topics of the server."""
        return self._piece.sequence + self.offset - self._piece.offset

    @property
    def timestamp_ms(self) -> int:
        """When it was published, by the server's clock, in ms since 1970."""
        return self._piece.at_ms

    @property
    def timestamp(self) -> datetime:
        """When it was published, by the server's clock."""
        return datetime.fromtimestamp(self._piece.at_ms / SECOND_MS, UTC)

    def __repr__(self) -> str:
        cut = "..." if len(self.payload) > _SHOWN_BYTES else ""
        shown = f"{self.payload[:_SHOWN_BYTES]!r}{cut}"
        key = f" key={self.key!r}" if self.key else ""
        return f"<{type(self).__name__} {self.partition}/{self.offset} {shown}{key}>"


class MessagePage(Sequence[Message]):
    """What one read found: a sequence of messages, and where the log is."""

    def __init__(self, page: ReadPage) -> None:
        self._columns = page.columns
        self._messages: list[Message] | None = None
        self.partition = page.columns.partition
        self.next_offset = page.next_offset
        """Where the next read goes on."""
        self.first_kept = page.first_kept
        """The offset of the oldest message that is kept."""
        self.end_offset = page.end_offset
        """The offset that the next message of the partition will get."""
        self.missed = page.missed
        """Messages from the wanted offset on that were deleted before they were read."""
        self.is_closed = page.is_closed
        """Whether no further message will come after `end_offset`."""
        self.content_type = page.content_type
        """These three are told by a read with `tells_topic`; see `TopicInfo`."""
        self.origin = page.origin
        self.number = page.number

    @property
    def packed(self) -> list[PackedMessages]:
        """The messages in pieces that were published together, with the payloads of each as one
        run of bytes; for programs that pass them on as they are."""
        return self._columns.packed()

    @property
    def payloads(self) -> list[bytes]:
        """The payloads alone, which is the fastest way to read."""
        return list(self._columns.payloads)

    @property
    def columns(self) -> Columns:
        """The messages as columns, for programs that need no object of each."""
        return self._columns

    @property
    def messages(self) -> list[Message]:
        if self._messages is None:
            self._messages = messages_of(self._columns, Message)
        return self._messages

    @property
    def is_at_end(self) -> bool:
        """Whether the partition has no message after these."""
        return self.next_offset >= self.end_offset

    def __len__(self) -> int:
        return self._columns.count

    def __iter__(self) -> Iterator[Message]:
        return iter(self.messages)

    def __getitem__(self, at: Any) -> Any:
        return self.messages[at]

    def __repr__(self) -> str:
        return (
            f"<MessagePage partition={self.partition} messages={len(self)} "
            f"next_offset={self.next_offset}>"
        )


def messages_of(columns: Columns, kind: Any, *of_each: Any) -> list[Any]:
    """An object for each message of an answer; `of_each` are further arguments of all of them."""
    payloads = list(columns.payloads)
    made: list[Any] = []
    for piece in columns.pieces:
        at = len(made)
        made += map(
            kind,
            payloads[at : at + piece.count],
            count_from(piece.offset),
            count_from(at),
            repeat(piece),
            repeat(columns),
            *map(repeat, of_each),
        )
    return made


class ConsumedPage(MessagePage):
    """A window of one partition, which a shared group has leased to its consumer."""

    def __init__(self, window: Window) -> None:
        super().__init__(window.page)
        self.lease = window.lease_id
        """For calls about the messages by themselves (`topic.group(name)`); empty if there are no
        messages."""
        self.attempts = window.attempts or [1] * len(self)
        """Of each message: 1 for the first."""

    @property
    def ids(self) -> list[bytes]:
        """What names the messages in calls about the lease."""
        return references(self._columns)
