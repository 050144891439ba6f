"""Stalled callers: those that neither read their answers nor send the rest of their message."""

from collections.abc import Callable

from queueber.limits import KIB
from queueber.service.loop import Loop, TimerHandle

STALLED_SECONDS_MAX = 30.0
"""A connection that does not read its answers, or does not send the rest of its message, is closed:
one that moves less than `STALLED_SLICE_BYTES` in that time."""
STALLED_SECONDS_CROWDED = 5.0
"""The same when others need the memory."""
STALLED_SLICE_BYTES = 256 * KIB


class StallWatch:
    """Looks at a connection's progress now and then, as long as there is something to move."""

    def __init__(
        self,
        loop: Loop,
        *,
        progress: Callable[[], tuple[int, int]],
        is_crowded: Callable[[], bool],
        on_stalled: Callable[[int, float], None],
    ) -> None:
        """`progress` says how many bytes have moved so far, and how many are left to move;
        `on_stalled` is told how many are left, and after how many seconds."""
        self._loop = loop
        self._progress = progress
        self._is_crowded = is_crowded
        self._on_stalled = on_stalled
        self._timer: TimerHandle | None = None
        self._moved = 0
        self._seconds = 0.0

    def start(self) -> None:
        """There is something to move. No matter if the watch has begun already."""
        if self._timer is None:
            self._moved, _ = self._progress()
            self._seconds = 0.0
            self._look_later()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _look_later(self) -> None:
        self._timer = self._loop.call_later(STALLED_SECONDS_CROWDED, self._look)

    def _look(self) -> None:
        self._timer = None
        moved, left = self._progress()
        if not left:
            return
        if moved - self._moved >= STALLED_SLICE_BYTES:
            self.start()
            return
        self._seconds += STALLED_SECONDS_CROWDED
        if self._is_crowded() or self._seconds >= STALLED_SECONDS_MAX:
            self._on_stalled(left, self._seconds)
        else:
            self._look_later()
