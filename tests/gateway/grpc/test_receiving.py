"""Messages that come late: few are waited for, and the one that began first is cut first."""

from typing import cast

from queueber.gateway.grpc import receiving
from queueber.gateway.grpc.http2.call import Call
from queueber.gateway.grpc.receiving import cut_late
from queueber.gateway.grpc.statuses import Status


class Ending:
    """A call that notes how it was ended."""

    def __init__(self, held_bytes: int = 0) -> None:
        self.held_bytes = held_bytes
        self.ended: list[tuple[Status, str]] = []

    def finish(self, status: Status, text: str) -> None:
        self.ended.append((status, text))


CUT = [(Status.UNAVAILABLE, "request: it took too long to send; retry")]


def cut(
    begun: list[float], now: float, seconds_max: float = 60.0, held_bytes: int = 0
) -> list[bool]:
    """Which of the calls that began at these times, and keep so much each, are ended."""
    calls = [Ending(held_bytes) for _ in begun]
    waiting = {cast(Call, call): at for call, at in zip(calls, begun, strict=True)}
    cut_late(waiting, now, seconds_max, bytes_max=100)
    assert all(call.ended in ([], CUT) for call in calls)
    return [bool(call.ended) for call in calls]


def test_the_calls_that_are_late_for_longest_are_cut() -> None:
    late = receiving.LATE_MAX + 3
    found = cut([at / 1000 for at in range(late)] + [9.5] * 4, now=10.0)
    assert found == [True] * 3 + [False] * (late - 3) + [False] * 4


def test_no_call_is_waited_for_longer_than_the_timeout() -> None:
    assert cut([0.0, 5.0, 9.0], now=10.0, seconds_max=4.5) == [True, True, False]
    assert cut([0.0, 5.0, 9.0], now=10.0) == [False, False, False]


def test_calls_that_are_late_keep_no_more_than_their_share_of_the_memory() -> None:
    begun = [0.0, 1.0, 2.0, 3.0, 9.5]
    assert cut(begun, now=10.0, held_bytes=25) == [False] * 5
    assert cut(begun, now=10.0, held_bytes=26) == [True, False, False, False, False]
    assert cut(begun, now=10.0, held_bytes=60) == [True, True, True, False, False]
    assert cut(begun, now=10.0, held_bytes=101) == [True, True, True, True, False]
