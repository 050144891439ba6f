"""The gate: how many calls are under way, and whether more may come in."""

from queueber.errors import Unavailable
from queueber.limits import CONNECTION_CALLS_MAX, DELAY_SECONDS_MAX
from queueber.service.connection import Connection
from queueber.service.loop import Future, Loop


class Gate:
    """Counts calls under way. A poll that waits is not one: it holds nothing but its place."""

    def __init__(self, loop: Loop, calls_max: int) -> None:
        self._loop = loop
        self._calls_max = calls_max
        self._idle: Future | None = None
        self.calls = 0
        self._arriving = 0
        self.is_closed = False

    def check(self, connection: Connection) -> None:
        """Refuse a new call when there is no room for it."""
        connection.begun += 1
        connection.begun_ever += 1
        if self.is_closed:
            raise Unavailable("the server is shutting down; send the call again in a moment")
        calls = self.calls + self._arriving
        if calls >= self._calls_max:
            raise Unavailable(
                f"{calls} calls are under way, the limit; send the call again in a moment"
            )
        calls = connection.calls + connection.arriving
        if calls >= CONNECTION_CALLS_MAX:
            raise Unavailable(
                f"{calls} calls of this connection are under way, the limit; send the call again "
                "when some have ended"
            )
        if connection.delay_seconds > DELAY_SECONDS_MAX:
            _refuse_some(connection)
        # A call enters in the first turn of its task, if it gets that far; it counts until then.
        self._arriving += 1
        connection.arriving += 1
        self._loop.call_soon(self._arrived, connection)

    def _arrived(self, connection: Connection) -> None:
        self._arriving -= 1
        connection.arriving -= 1

    def enter(self) -> None:
        self.calls += 1

    def leave(self) -> None:
        self.calls -= 1
        if self.calls == 0 and self._idle is not None and not self._idle.done():
            self._idle.set_result(None)

    def close(self) -> None:
        """Let no further call in."""
        self.is_closed = True

    async def wait_idle(self) -> None:
        """Return once no call is under way."""
        while self.calls:
            self._idle = self._loop.create_future()
            await self._idle


def _refuse_some(connection: Connection) -> None:
    """The longer they wait, the more of them. But never most: to refuse a call costs nearly what it
    costs to serve it, and who is refused all the time does not learn when it may come."""
    connection.shed += min(0.5, (connection.delay_seconds / DELAY_SECONDS_MAX - 1) / 4)
    if connection.shed >= 1:
        connection.shed -= 1
        raise Unavailable(
            f"calls of this connection lie here for {connection.delay_seconds:.1f} s before their "
            "turn comes; send fewer, and this one again later"
        )
