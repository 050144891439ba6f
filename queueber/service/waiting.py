"""Waiting for something that is not there yet: look, wait until it may have come, look again."""

from collections.abc import Callable
from typing import TypeVar

from queueber.service.session import Session
from queueber.service.shell import Shell, wake

T = TypeVar("T")

Look = Callable[[], tuple[T, bool]]
"""An answer as things stand, and whether it is what the caller waits for."""


async def keep_looking(
    shell: Shell,
    session: Session,
    key: object,
    look: Look[T],
    first: tuple[T, bool],
    *,
    wait_ms: int,
) -> T:
    """Look until the answer is what the caller waits for, or the time is up.

    Look again whenever the wakeups of the key fire; `first` is what the first look has found.
    """
    answer, is_it = first
    ends_at_ms = shell.clock.now_ms() + min(wait_ms, shell.limits.poll_wait_ms_max)
    if not is_it:
        # Other calls may have come between the first look and this turn.
        answer, is_it = look()
    while not is_it and not shell.admission.is_closed:
        left_ms = ends_at_ms - shell.clock.now_ms()
        if left_ms <= 0:
            break
        shell.check_may_wait(session)
        future = shell.loop.create_future()
        shell.wakeups.add(key, future)
        timer = shell.loop.call_later(left_ms / 1000, wake, future)
        try:
            await shell.wait(session, future)
        finally:
            timer.cancel()
            shell.wakeups.discard(key, future)
        answer, is_it = look()
    return answer
