"""Numbered calls of a producer: sent in order, each by itself, and resent after a loss.

The server remembers the last calls of a producer. It answers a resent call as it did the first
time, and refuses a number that is not the next one. So when a call is lost, the calls after it fail
as well, and all are resent in order:

    window   [ 4  5  6  7 ]  under way, 4 is the oldest
    pending    8  9 ...      sent as the window moves on

Until the server has stored a new call, calls are sent one at a time: they may repeat calls of an
earlier run of the program.

When the server refuses a call for good, the calls after it would leave a gap, so they fail as well.
From then on the producer accepts only calls that name their number, so that nothing else gets the
number of the call that failed.
"""

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, Protocol, TypeVar

from queueber.client.arguments.values import to_number, to_text
from queueber.client.transport.backoff import Retries
from queueber.client.transport.connection import CLOSED_UNDER_WAY, CLOSED_UNSENT
from queueber.client.transport.link import Link
from queueber.client.transport.remote_queue import Operation, RemoteQueue
from queueber.errors import Aborted, OutcomeUnknown, Unavailable
from queueber.limits import PRODUCER_ANSWERS_KEPT, PRODUCER_ID_BYTES_MAX
from queueber.model import NewItems, Producer, Publication


class Repeatable(Protocol):
    """The answer to a numbered call."""

    is_repeat: bool


P = TypeVar("P", bound=NewItems | Publication)
A = TypeVar("A", bound=Repeatable)


@dataclass(slots=True)
class _Numbered(Generic[P]):
    call: P
    sequence: int
    """0 until it is assigned."""


class NumberedCalls(ABC, Generic[P, A]):
    """The calls of one producer to one queue or topic."""

    def __init__(self, to: RemoteQueue, producer_id: str, epoch: int) -> None:
        self._to = to
        self._connection = to.connection
        self.producer_id = to_text("producer", producer_id, PRODUCER_ID_BYTES_MAX, is_needed=True)
        self.epoch = to_number("epoch", epoch)
        self.next_sequence = 1
        """The number of the next call; after a call failed, the number of that call."""
        self._failed: Exception | None = None
        self._window: deque[Operation[_Numbered[P]]] = deque()
        self._answers: deque[asyncio.Task[A]] = deque()
        """The calls under way, for the first operations of the window."""
        self._pending: deque[Operation[_Numbered[P]]] = deque()
        self._link: Link | None = None
        """The link to send on at once; None while nothing is under way."""
        self._runs = False
        self._is_new = False
        """Whether the server has stored a new call. Until then each call waits for the one before:
        if an earlier run of the program made other calls, nothing after them may be stored."""

    @abstractmethod
    def _size(self, call: P) -> tuple[int, int]:
        """How many parts a call has, and how many bytes."""

    @abstractmethod
    async def _send(self, link: Link, call: P) -> A:
        """Make a call once; raises `OutcomeUnknown` if it may have worked."""

    # --- any thread -------------------------------------------------------------------------------

    def submit(self, call: P, sequence: int | None) -> "Future[A]":
        number = 0 if sequence is None else to_number("sequence", sequence, least=1)
        payload, future = _Numbered(call, number), self._connection.new_future()
        operation = Operation(payload, future, *self._size(call))
        self._connection.post(partial(self._put, operation))
        return future

    # --- on the loop ------------------------------------------------------------------------------

    def _put(self, operation: Operation[_Numbered[P]]) -> None:
        given = operation.payload
        if given.sequence == 0:
            if self._failed is not None:
                operation.fail(_blocked(self.next_sequence, self._failed))
                return
            given.sequence = self.next_sequence
        self._failed = None
        self.next_sequence = given.sequence + 1
        producer = Producer(self.producer_id, self.epoch, given.sequence)
        given.call = replace(given.call, producer=producer)
        self._pending.append(operation)
        if self._link is not None:
            self._send_more(self._link)
        elif not self._runs:
            self._runs = True
            self._connection.spawn(self._run()).add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        if task.cancelled():
            # Drop what belongs to the connection now: users may keep the producer longer.
            self._link = None
            self._answers.clear()
            for operation in self._window:
                operation.fail(OutcomeUnknown(CLOSED_UNDER_WAY))
            for operation in self._pending:
                operation.fail(Unavailable(CLOSED_UNSENT))

    async def _run(self) -> None:
        """Send calls and answer callers until nothing is left to send."""
        retries = Retries(self._connection.give_up_at())
        unsure: OutcomeUnknown | None = None
        while self._window or self._pending:
            try:
                self._link = await self._connection.get_link(retries.give_up_at)
                self._send_more(self._link)
                # Not awaited directly: when the client closes, each is cancelled by itself.
                await asyncio.wait([self._answers[0]])
                answer = self._answers[0].result()
            except Exception as error:  # noqa: BLE001  the caller gets it, whatever it is
                if isinstance(error, OutcomeUnknown):
                    unsure = error
                await self._end_flow()
                is_passing = isinstance(error, OutcomeUnknown | Unavailable)
                if not is_passing or not await retries.pause():
                    self._fail_all(unsure or error)
                continue
            self._answers.popleft()
            self._is_new = self._is_new or not answer.is_repeat
            self._window.popleft().answer(answer)
            retries = Retries(self._connection.give_up_at())
            unsure = None
        self._link = None
        self._runs = False

    def _send_more(self, link: Link) -> None:
        """Send what was not sent on this link yet, as far as the window allows."""
        window = PRODUCER_ANSWERS_KEPT if self._is_new else 1
        while self._pending and len(self._window) < window:
            self._window.append(self._pending.popleft())
        for operation in list(self._window)[len(self._answers) :]:
            self._answers.append(self._connection.spawn(self._send(link, operation.payload.call)))

    async def _end_flow(self) -> None:
        """Wait for the calls under way: they fail, being out of order after the failed one."""
        self._link = None
        answers = list(self._answers)
        self._answers.clear()
        await asyncio.gather(*answers, return_exceptions=True)

    def _fail_all(self, error: Exception) -> None:
        first, *behind = [*self._window, *self._pending]
        self._window.clear()
        self._pending.clear()
        self.next_sequence = first.payload.sequence
        self._failed = error
        first.fail(error)
        for operation in behind:
            operation.fail(_blocked(self.next_sequence, error))


def _blocked(sequence: int, error: Exception) -> Aborted:
    return Aborted(
        f"sequence: call {sequence} of the producer failed ({error}); repeat it with "
        f"sequence={sequence}, or go on with a greater epoch"
    )
