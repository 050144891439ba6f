"""Receiving the first messages of calls: how long each may take, and how many may be late.

A small message comes with the head of its call. So the gateway lets few be late for long, and cuts
the one that is late for longest when there are more.
"""

import asyncio

from queueber.gateway.grpc.http2.call import Call
from queueber.gateway.grpc.statuses import Status

LATE_SECONDS = 1.0
LATE_MAX = 32
"""Messages that take longer than that, at a time: 160 MiB, if each has the largest size."""
_WATCH_SECONDS = 0.5
_TOO_LONG = "request: it took too long to send; retry"


def cut_late(waiting: dict[Call, float], now: float, seconds_max: float) -> None:
    """Refuse calls that wait for their first message for too long, or are too many.

    `waiting` has the calls in the order in which they began, with the times.
    """
    late = [call for call, begun in waiting.items() if now - begun > LATE_SECONDS]
    surplus = late[: max(0, len(late) - LATE_MAX)]
    over = [call for call in late if now - waiting[call] > seconds_max]
    for call in {*surplus, *over}:
        call.finish(Status.UNAVAILABLE, _TOO_LONG)


async def cut_late_calls(waiting: dict[Call, float], seconds_max: float) -> None:
    """Do so now and then, until it is cancelled. One task looks at all of them, which costs less
    than a timer for each."""
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(_WATCH_SECONDS)
        cut_late(waiting, loop.time(), seconds_max)
