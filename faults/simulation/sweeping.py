"""The loop of `queueber/sweeper/loops.py`, on asyncio instead of trio."""

import asyncio
import contextlib

from queueber.errors import Unavailable
from queueber.service.service import Service


async def sweep_when_due(service: Service, woken: asyncio.Event) -> None:
    """Sweep forever. `woken` is set if something is due earlier."""
    loop = asyncio.get_running_loop()
    while True:
        woken.clear()
        due_in_ms = service.next_due_in_ms()
        timer = None if due_in_ms is None else loop.call_later(due_in_ms / 1000, woken.set)
        await woken.wait()
        if timer is not None:
            timer.cancel()
        # If the disk is full, what is due stays due, and the engine retries it later.
        with contextlib.suppress(Unavailable):
            is_due = True
            while is_due:
                is_due = service.sweep()
                await asyncio.sleep(0)
