"""A handler that blocks the loop of a worker process, which notices it soon."""

import asyncio
import multiprocessing
import time

import queueber
from queueber.worker.pool import loop_monitor

if multiprocessing.parent_process() is not None:
    loop_monitor.BLOCKED_SECONDS = 0.2
    loop_monitor._CHECK_SECONDS = 0.1


class Reports(queueber.Middleware):
    def on_error(self, item: queueber.WorkItem, error: BaseException) -> None:
        error.add_note(f"told of {item.contents.decode()}")


async def handle(item: queueber.WorkItem) -> bytes:
    if item.contents == b"hang":
        await asyncio.sleep(0.3)  # until the others have begun
        time.sleep(3600)  # noqa: ASYNC251  it is what the test is about
    if item.deliveries == 1:
        await asyncio.sleep(3600)
    return b"%d" % item.attempt
