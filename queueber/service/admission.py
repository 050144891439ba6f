"""Admission: how many calls are under way in the server, and whether more may come in.

At the limit, callers are held back for a while: their adapter reads no further call of theirs until
some have ended. The calls of a caller that has waited long enough are refused.
"""

from collections.abc import Callable

from queueber.errors import Unavailable
from queueber.service.loop import Future, Loop

WAIT_SECONDS_MAX = 1.0
"""How long a caller is held back at the limit before its calls are refused."""


class Admission:
    """Counts calls under way. A call that waits for items or results does not count."""

    def __init__(self, loop: Loop, calls_max: int) -> None:
        self.loop = loop
        self.calls_max = calls_max
        self._idle: Future | None = None
        self.calls = 0
        self.arriving = 0
        """Calls that were admitted in this turn of the loop, and enter in the next."""
        self.is_closed = False
        self._held_back: dict[Callable[[], None], None] = {}
        self._is_waking = False

    @property
    def is_full(self) -> bool:
        return self.calls + self.arriving >= self.calls_max

    def check_open(self) -> None:
        if self.is_closed:
            raise Unavailable("the server is shutting down; send the call again in a moment")

    def refuse(self) -> None:
        raise Unavailable(
            f"{self.calls + self.arriving} calls are under way, the limit; send the call again in "
            "a moment"
        )

    def enter(self) -> None:
        self.calls += 1

    def arrived(self) -> None:
        """A call has begun, or was refused: it is no longer on its way in."""
        self.arriving -= 1
        self._wake_held_back()

    def _wake_held_back(self) -> None:
        if self._held_back and not self._is_waking and not self.is_full:
            self._is_waking = True
            self.loop.call_soon(self._let_in)

    def leave(self) -> None:
        self.calls -= 1
        self._wake_held_back()
        if self.calls == 0 and self._idle is not None and not self._idle.done():
            self._idle.set_result(None)

    def hold_back(self, go_on: Callable[[], None]) -> None:
        """Call `go_on` once more calls may come in. First come, first served."""
        self._held_back[go_on] = None

    def forget(self, go_on: Callable[[], None]) -> None:
        self._held_back.pop(go_on, None)

    def _let_in(self) -> None:
        self._is_waking = False
        while self._held_back and not self.is_full:
            go_on = next(iter(self._held_back))
            del self._held_back[go_on]
            go_on()

    def close(self) -> None:
        """Let no further call in."""
        self.is_closed = True

    async def wait_idle(self) -> None:
        """Return once no call is under way."""
        while self.calls:
            self._idle = self.loop.create_future()
            await self._idle
