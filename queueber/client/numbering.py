"""Numbered adds of a producer: sent alone and in order, and repeated in order after a loss.

The server knows the last calls of a producer by their numbers and answers a repeated one as it did
the first time. It refuses a number that is not the next one, so when a call is lost, those behind
it fail with it and are sent again together, in order:

    window   [ 4  5  6  7 ]  under way, 4 unanswered longest
    pending    8  9 ...      sent as the window moves on

Calls that repeat those of an earlier life of the producer are sent one at a time.

When a call is refused for good, what stands behind it would leave a gap and fails too. From then on
the producer takes only calls that name their number: the next one in line may be another than the
one that failed, and a server that answers the number already would take it for a repetition.
"""

import asyncio
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from queueber.client.adding import AddedIds, ids_of, send_add, size_of
from queueber.client.arguments import to_number, to_text
from queueber.client.caller import Caller
from queueber.client.core import Backoff
from queueber.client.lane import Operation
from queueber.client.link import Link
from queueber.errors import Aborted, OutcomeUnknown, Unavailable
from queueber.limits import PRODUCER_ANSWERS_KEPT, PRODUCER_ID_BYTES_MAX
from queueber.model import NewItems, Producer
from queueber.wire.items import read_added


@dataclass(slots=True)
class _Numbered:
    items: NewItems
    sequence: int
    """0 until it has one."""


class NumberedAdds:
    def __init__(self, caller: Caller, producer_id: str, epoch: int) -> None:
        self._caller = caller
        self._core = caller.core
        self.producer_id = to_text("producer", producer_id, PRODUCER_ID_BYTES_MAX, is_needed=True)
        self.epoch = to_number("epoch", epoch)
        self.next_sequence = 1
        """The number of the next call; after one that failed, the number that failed."""
        self._failed: Exception | None = None
        self._window: deque[Operation[_Numbered]] = deque()
        self._answers: deque[asyncio.Task[Any]] = deque()
        """What is under way, for the first operations of the window."""
        self._pending: deque[Operation[_Numbered]] = deque()
        self._link: Link | None = None
        """Where calls may be sent at once; None while nothing flows."""
        self._runs = False
        self._is_new = False
        """Whether a call was stored, and not known from before. Until then each waits for the one
        before it: were the work of an earlier life to differ, no later call may be stored."""

    # --- any thread -------------------------------------------------------------------------------

    def add(self, items: NewItems, sequence: int | None) -> "Future[AddedIds]":
        number = 0 if sequence is None else to_number("sequence", sequence, least=1)
        operation = self._caller.operation(
            _Numbered(items, number), len(items.contents), size=size_of(items)
        )
        self._core.post(partial(self._put, operation))
        return operation.future

    # --- the core's loop --------------------------------------------------------------------------

    def _put(self, operation: Operation[_Numbered]) -> None:
        given = operation.payload
        if given.sequence == 0:
            if self._failed is not None:
                operation.fail(_stands_still(self.next_sequence, self._failed))
                return
            given.sequence = self.next_sequence
        self._failed = None
        self.next_sequence = given.sequence + 1
        producer = Producer(self.producer_id, self.epoch, given.sequence)
        given.items = replace(given.items, producer=producer)
        self._pending.append(operation)
        if self._link is not None:
            self._send_more(self._link)
        elif not self._runs:
            self._runs = True
            self._core.spawn(self._run()).add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        if task.cancelled():
            # What belongs to the connection goes before whoever holds the producer does.
            self._link = None
            self._answers.clear()
            for operation in self._window:
                operation.fail(OutcomeUnknown("the client was closed while the call was under way"))
            for operation in self._pending:
                operation.fail(Unavailable("the client was closed before the call was sent"))

    async def _run(self) -> None:
        """Send and answer, call after call, until there is nothing more to do."""
        backoff = self._core.new_backoff()
        unsure: OutcomeUnknown | None = None
        while self._window or self._pending:
            try:
                self._link = await self._core.get_link(backoff.give_up_at)
                self._send_more(self._link)
                # Not awaited itself: when the client closes, each is cancelled on its own.
                await asyncio.wait([self._answers[0]])
                added = read_added(self._answers[0].result().resp)
            except Exception as error:  # noqa: BLE001  whatever it is belongs to the caller
                if isinstance(error, OutcomeUnknown):
                    unsure = error
                await self._end_flow()
                if not await self._may_repeat(error, backoff):
                    self._fail_all(unsure or error)
                continue
            self._answers.popleft()
            self._is_new = self._is_new or not added.is_repeat
            operation = self._window.popleft()
            operation.answer(ids_of(added, 0, operation.parts))
            backoff = self._core.new_backoff()
            unsure = None
        self._link = None
        self._runs = False

    def _send_more(self, link: Link) -> None:
        """Send what has not been sent on this connection, as far as the window allows."""
        window = PRODUCER_ANSWERS_KEPT if self._is_new else 1
        while self._pending and len(self._window) < window:
            self._window.append(self._pending.popleft())
        for operation in list(self._window)[len(self._answers) :]:
            self._answers.append(self._core.spawn(self._send(link, operation)))

    async def _send(self, link: Link, operation: Operation[_Numbered]) -> Any:
        items = operation.payload.items
        self._caller.check_size("contents", operation.parts, operation.size)
        return await self._core.answer(
            link,
            lambda link: send_add(self._caller.queue(link), items),
            is_repeatable=False,
            queue=self._caller.name,
        )

    async def _end_flow(self) -> None:
        """Let what is under way end: it is out of order behind a call that failed."""
        self._link = None
        answers = list(self._answers)
        self._answers.clear()
        await asyncio.gather(*answers, return_exceptions=True)

    async def _may_repeat(self, error: Exception, backoff: Backoff) -> bool:
        is_passing = isinstance(error, OutcomeUnknown | Unavailable)
        return is_passing and await backoff.pause()

    def _fail_all(self, error: Exception) -> None:
        first, *behind = [*self._window, *self._pending]
        self._window.clear()
        self._pending.clear()
        self.next_sequence = first.payload.sequence
        self._failed = error
        first.fail(error)
        for operation in behind:
            operation.fail(_stands_still(self.next_sequence, error))


def _stands_still(sequence: int, error: Exception) -> Aborted:
    return Aborted(
        f"sequence: call {sequence} of the producer failed ({error}); repeat it with "
        f"sequence={sequence}, or go on with a greater epoch"
    )
