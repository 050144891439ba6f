"""Answers that have not left: how much memory they hold, of one connection and of all.

An answer is in memory from the moment in which its items are taken until the socket has it. A
caller that asks and never reads would have them pile up, so who holds too much gets nothing more
until it has read.
"""

from types import TracebackType
from typing import Self

from queueber.errors import Unavailable


class Outboxes:
    """Those of all connections together."""

    def __init__(self, *, bytes_max: int, connection_bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.connection_bytes_max = connection_bytes_max
        self.bytes = 0

    @property
    def are_crowded(self) -> bool:
        """Whether those who do not read should go soon."""
        return self.bytes > self.bytes_max // 2


class Outbox:
    """The answers of one connection: some are being made, some wait for the socket."""

    def __init__(self, outboxes: Outboxes) -> None:
        self.outboxes = outboxes
        self._making = 0
        self._unsent = 0
        self.owed = 0
        """Of answers that were made and did not come out of Cap'n Proto. They do so in the next
        turns, unless their caller has asked that they be kept here."""
        self._is_closed = False

    @property
    def bytes(self) -> int:
        return self._making + self._unsent + self.owed

    @property
    def is_hoard(self) -> bool:
        """Whether answers are kept here that may never be sent."""
        many = self.outboxes.connection_bytes_max // 2
        return self.owed > many or (self.owed > 0 and self.outboxes.are_crowded)

    def claim(self) -> "Claim":
        return Claim(self)

    def check(self) -> None:
        """Refuse to make another answer when too many have not left."""
        held = self.bytes
        if held >= self.outboxes.connection_bytes_max:
            raise Unavailable(
                f"{held} bytes of answers wait for this connection to read them; read, then send "
                "the call again"
            )
        if self.outboxes.bytes >= self.outboxes.bytes_max:
            raise Unavailable(
                f"{self.outboxes.bytes} bytes of answers wait to be read, the limit; send the call "
                "again in a moment"
            )

    def set_unsent(self, size: int) -> None:
        """What waits for the socket now."""
        if self._is_closed:
            return
        self.outboxes.bytes += size - self._unsent
        self._unsent = size

    def add_making(self, size: int) -> None:
        self.outboxes.bytes += size
        self._making += size

    def made(self, size: int) -> None:
        """An answer of that size was given to Cap'n Proto."""
        if self._is_closed:
            return
        self.outboxes.bytes += size
        self.owed += size

    def passed_on(self, size: int) -> None:
        """So many bytes came out of it. What goes with an answer makes them a little more."""
        size = min(size, self.owed)
        self.outboxes.bytes -= size
        self.owed -= size

    def close(self) -> None:
        """The connection is over, and what was kept for it is gone.

        Cap'n Proto hears of it a little later: answers that are made meanwhile go nowhere.
        """
        self._is_closed = True
        self.outboxes.bytes -= self._unsent + self.owed
        self._unsent = self.owed = 0


class Claim:
    """The room that the answer of one call takes, from when its items are taken.

    Made at once, entered by the coroutine that answers: a call that ends before its first turn has
    claimed nothing.
    """

    __slots__ = ("_outbox", "_size")

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._size = 0

    def check(self) -> None:
        self._outbox.check()

    def take(self, size: int) -> None:
        self._size += size
        self._outbox.add_making(size)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._outbox.add_making(-self._size)
        if kind is None:
            self._outbox.made(self._size)
        self._size = 0
