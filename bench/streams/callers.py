"""Callers that send the next request when the last one is answered, all on one thread.

Sockets and epoll without an event loop: a call costs the generator about as much as the system
takes to send and receive it.
"""

import select
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

from bench.peers.order import Tally
from bench.streams.requests import KIB, connected, is_answered

_RECEIVE_BYTES = 64 * KIB
_SILENCE_SECONDS_MAX = 60.0
"""Without any answer for so long, the server is taken for stuck."""


def run_callers(
    port: int, calls: Sequence[Iterator[bytes]], seconds: float, items: int, tally: Tally
) -> None:
    """One connection for each iterator of requests; counts `items` for each answer. Ends with the
    time, or when all requests are sent."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(connected(port)) for _ in calls]
        waiting = stack.enter_context(select.epoll())
        callers = {
            each.fileno(): (each, coming) for each, coming in zip(sockets, calls, strict=True)
        }
        began_ns = dict.fromkeys(callers, 0)
        partial = dict.fromkeys(callers, b"")
        tally.started_ns = time.perf_counter_ns()
        for number, (opened, coming) in callers.items():
            waiting.register(number, select.EPOLLIN)
            began_ns[number] = time.perf_counter_ns()
            opened.sendall(next(coming))
        under_way = len(callers)
        while under_way:
            ready = waiting.poll(_SILENCE_SECONDS_MAX)
            if not ready:
                raise RuntimeError(f"no answer in {_SILENCE_SECONDS_MAX:.0f} s")
            is_over = tally.is_over(seconds)
            for number, _ in ready:
                opened, coming = callers[number]
                data = partial[number] + opened.recv(_RECEIVE_BYTES)
                if not is_answered(data):
                    if data == partial[number]:
                        raise RuntimeError(f"hung up after {data!r}")
                    partial[number] = data
                    continue
                partial[number] = b""
                tally.count(items, began_ns[number])
                sent = None if is_over else next(coming, None)
                if sent is None:
                    under_way -= 1
                    waiting.unregister(number)
                else:
                    began_ns[number] = time.perf_counter_ns()
                    opened.sendall(sent)
