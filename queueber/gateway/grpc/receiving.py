"""Receiving the first messages of calls: how long each may take, and how many may be late.

A small message comes with the head of its call. So the gateway lets few be late for long, and cuts
the one that is late for longest when there are more, or when they keep half of what bodies may
have.
"""

import asyncio

from queueber.gateway.grpc.http2.call import Call
from queueber.gateway.grpc.statuses import Status

LATE_SECONDS = 1.0
LATE_MAX = 32
"""Messages that take longer than that, at a time: 160 MiB, if each has the largest size."""
_WATCH_SECONDS = 0.5
_TOO_LONG = "request: it took too long to send; retry"


def cut_late(waiting: dict[Call, float], now: float, seconds_max: float, bytes_max: int) -> None:
    """Refuse calls that wait for their first message for too long, are too many, or keep more than
    `bytes_max` with what came of these messages.

    `waiting` has the calls in the order in which they began, with the times.
    """
    late = [call for call, begun in waiting.items() if now - begun > LATE_SECONDS]
    surplus = late[: max(0, len(late) - LATE_MAX)]
    held = sum(call.held_bytes for call in late[len(surplus) :])
    for call in late[len(surplus) :]:
        if held <= bytes_max:
            break
        held -= call.held_bytes
        surplus.append(call)
    over = [call for call in late if now - waiting[call] > seconds_max]
    for call in {*surplus, *over}:
        call.finish(Status.UNAVAILABLE, _TOO_LONG)


async def cut_late_calls(waiting: dict[Call, float], seconds_max: float, bytes_max: int) -> None:
    """Do so now and then, until it is cancelled. One task looks at all of them, which costs less
    than a timer for each."""
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(_WATCH_SECONDS)
        cut_late(waiting, loop.time(), seconds_max, bytes_max)
