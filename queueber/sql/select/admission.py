"""Which statements run: so many at a time, so many that wait, first come, first served."""

import threading
from collections import deque
from concurrent.futures import Future

from queueber.errors import Unavailable
from queueber.sql.select.awaiting import wait_in_loop


class Admission:
    """May be used from programs of any loop, and from several threads."""

    def __init__(self, running_max: int, waiting_max: int) -> None:
        self._lock = threading.Lock()
        self._running_max = running_max
        self._waiting_max = waiting_max
        self._running = 0
        self._waiting: deque[Future[None]] = deque()

    async def take(self) -> None:
        """Wait for a turn. `Unavailable` if too many wait already."""
        turn: Future[None] = Future()
        with self._lock:
            if self._running < self._running_max:
                self._running += 1
                return
            if len(self._waiting) >= self._waiting_max:
                raise Unavailable(
                    f"{self._running} SELECTs run, {len(self._waiting)} wait for their turn; retry"
                )
            self._waiting.append(turn)
        try:
            await wait_in_loop(turn)
        except BaseException:
            with self._lock:
                has_turn = turn not in self._waiting
                if not has_turn:
                    self._waiting.remove(turn)
            if has_turn:
                self.give_back()
            raise

    def give_back(self) -> None:
        with self._lock:
            if self._waiting:
                following = self._waiting.popleft()
            else:
                self._running -= 1
                return
        if not following.cancelled():
            following.set_result(None)
