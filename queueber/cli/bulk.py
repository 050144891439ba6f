"""Adding many items: in calls of bounded size, a few of them under way, in order."""

import contextlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field

from queueber.cli.exits import INTERRUPTED, Failure, failure_of
from queueber.cli.output import counted
from queueber.client.client import Queue
from queueber.errors import OutcomeUnknown, QueueberError, Unavailable
from queueber.limits import ITEM_WIRE_BYTES, MIB

_CALLS_MAX = 4
"""Calls under way: the next is made ready and sent while the server still works on the last."""

_CALL_ITEMS_MAX = 1000
_CALL_BYTES_MAX = MIB


def split_calls(items: Iterable[bytes], message_bytes_max: int) -> Iterator[list[bytes]]:
    """The items as calls within our own bounds; an item that is over them goes alone."""
    bytes_max = min(_CALL_BYTES_MAX, message_bytes_max // 2)
    call: list[bytes] = []
    call_bytes = 0
    for item in items:
        size = len(item) + ITEM_WIRE_BYTES
        if call and (len(call) == _CALL_ITEMS_MAX or call_bytes + size > bytes_max):
            yield call
            call, call_bytes = [], 0
        call.append(item)
        call_bytes += size
    if call:
        yield call


@dataclass(slots=True)
class _Call:
    items: int
    byte_count: int
    future: "Future[list[bytes]]"


@dataclass(slots=True)
class Bulk:
    """Adds, and keeps count of what is certain."""

    queue: Queue
    delay: float
    is_idle: Callable[[], bool]
    """Whether the input makes us wait: then there is time to hear what became of the calls."""

    on_added: Callable[[list[bytes], int], None]
    """Told the ids of each call, in order, and how many bytes of input they were."""

    added: int = 0
    unknown: int = 0
    _waiting: deque[_Call] = field(default_factory=deque)

    def run(self, batches: Iterable[list[bytes]]) -> None:
        """Add everything. A `Failure` says how many items were added for certain."""
        try:
            for batch in batches:
                if len(self._waiting) == _CALLS_MAX:
                    self._settle()
                future = self.queue.add_soon(batch, delay=self.delay)
                byte_count = sum(map(len, batch)) + len(batch)
                self._waiting.append(_Call(len(batch), byte_count, future))
                while self._waiting and self.is_idle():
                    self._settle()
            while self._waiting:
                self._settle()
        except QueueberError as error:
            self._settle_rest(is_lost=isinstance(error, OutcomeUnknown | Unavailable))
            failure = failure_of(error)
            raise Failure(f"{failure.message}; {self._certain()}", failure.exit_code) from error
        except KeyboardInterrupt:
            self.unknown += sum(call.items for call in self._waiting)
            raise Failure(f"interrupted; {self._certain()}", INTERRUPTED) from None

    def _settle(self) -> None:
        """Wait for the oldest call. One that an interrupt kept us from hearing of stays."""
        call = self._waiting[0]
        try:
            ids = call.future.result()
        except QueueberError as error:
            self._waiting.popleft()
            if isinstance(error, OutcomeUnknown):
                self.unknown += call.items
            raise
        self._waiting.popleft()
        self.added += call.items
        self.on_added(ids, call.byte_count)

    def _settle_rest(self, *, is_lost: bool) -> None:
        """Learn what became of the calls that were under way when the first one failed.

        If the server is lost, nobody will tell soon: what has no answer yet is unknown.
        """
        while self._waiting:
            if is_lost and not self._waiting[0].future.done():
                self.unknown += self._waiting.popleft().items
                continue
            # The first failure is the one to report.
            with contextlib.suppress(QueueberError):
                self._settle()

    def _certain(self) -> str:
        told = f"{counted(self.added, 'item')} {'was' if self.added == 1 else 'were'} added"
        return f"{told}, and up to {self.unknown:,} more may have been" if self.unknown else told
