"""Unread answers: how much memory they hold, of one session and of all.

An answer is in memory from the moment in which its items are leased until the socket has taken it.
A caller that asks and never reads would let them pile up, so a session above the limit gets no
further answer until it has read.
"""

from typing import Self

from queueber.errors import Unavailable
from queueber.limits import MIB
from queueber.model import MetricFamily, Sample
from queueber.service.measures.metrics import UNREAD_BYTES

SESSION_BYTES_MAX = 128 * MIB
"""Unread answers of one session: a few of the largest."""
ALL_BYTES_MAX = 1024 * MIB
"""The same of all sessions."""


class AnswerBudget:
    """The unread answers of all sessions together, and the limits on them."""

    def __init__(
        self, *, bytes_max: int = ALL_BYTES_MAX, session_bytes_max: int = SESSION_BYTES_MAX
    ) -> None:
        self.bytes_max = bytes_max
        self.session_bytes_max = session_bytes_max
        self.bytes = 0

    def families(self) -> list[MetricFamily]:
        return [MetricFamily(UNREAD_BYTES, [Sample((), (self.bytes,))])]

    @property
    def is_crowded(self) -> bool:
        """Whether callers that do not read should be disconnected soon."""
        return self.bytes > self.bytes_max // 2


class UnreadAnswers:
    """The answers of one session: some are being made, some wait for the socket."""

    def __init__(self, budget: AnswerBudget) -> None:
        self.budget = budget
        self._making = 0
        self._unsent = 0
        self.owed = 0
        """Bytes of answers that were given to Cap'n Proto and have not come out of it. They do so
        in the next turns, unless their caller has asked that they be kept here."""
        self._is_closed = False

    @property
    def bytes(self) -> int:
        return self._making + self._unsent + self.owed

    @property
    def is_hoard(self) -> bool:
        """Whether answers are kept here that may never be sent."""
        many = self.budget.session_bytes_max // 2
        return self.owed > many or (self.owed > 0 and self.budget.is_crowded)

    def new_answer(self) -> "AnswerMemory":
        return AnswerMemory(self)

    def check(self) -> None:
        """Refuse to make another answer when too many have not left."""
        held = self.bytes
        if held >= self.budget.session_bytes_max:
            raise Unavailable(
                f"{held} bytes of answers wait for this connection to read them; read, then send "
                "the call again"
            )
        if self.budget.bytes >= self.budget.bytes_max:
            raise Unavailable(
                f"{self.budget.bytes} bytes of answers wait to be read, the limit; send the call "
                "again in a moment"
            )

    def set_unsent(self, size: int) -> None:
        """Set how many bytes wait for the socket now."""
        if self._is_closed:
            return
        self.budget.bytes += size - self._unsent
        self._unsent = size

    def add_making(self, size: int) -> None:
        self.budget.bytes += size
        self._making += size

    def made(self, size: int) -> None:
        """An answer of that size was given to Cap'n Proto."""
        if self._is_closed:
            return
        self.budget.bytes += size
        self.owed += size

    def passed_on(self, size: int) -> None:
        """So many bytes came out of Cap'n Proto: answers, and a little that goes with them."""
        size = min(size, self.owed)
        self.budget.bytes -= size
        self.owed -= size

    def close(self) -> None:
        """The connection is over, and what was kept for it is gone.

        Cap'n Proto hears of it a little later: answers that are made meanwhile are not counted.
        """
        self._is_closed = True
        self.budget.bytes -= self._unsent + self.owed
        self._unsent = self.owed = 0


class AnswerMemory:
    """The memory that the answer of one call takes, from when its items are leased.

    Made at once, entered by the coroutine that answers: a call that ends before its first turn has
    claimed nothing.
    """

    __slots__ = ("_answers", "_size")

    def __init__(self, answers: UnreadAnswers) -> None:
        self._answers = answers
        self._size = 0

    def check(self) -> None:
        self._answers.check()

    def take(self, size: int) -> None:
        self._size += size
        self._answers.add_making(size)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._answers.add_making(-self._size)
        if kind is None:
            self._answers.made(self._size)
        self._size = 0
