"""When a connection ends by itself: times are those of a loop, which nobody waits for here."""

import pytest

from queueber.gateway.bounds import Bound
from queueber.gateway.grpc.http2.liveness import Liveness
from queueber.gateway.grpc.http2.shared import Shared


@pytest.fixture
def liveness() -> Liveness:
    shared = Shared(
        handlers={}, bodies=Bound("bytes", 1), message_bytes_max={}, header_bytes_max=1,
        connections_max=1, header_timeout=2.0, answer_timeout=5.0, idle_timeout=75.0,
    )  # fmt: skip
    return Liveness(shared, now=100.0)


def test_a_peer_that_does_not_greet_or_does_not_end_its_head_is_dead(liveness: Liveness) -> None:
    assert [liveness.is_dead(now) for now in (101.9, 102.1)] == [False, True]
    liveness.has_greeted = True
    assert not liveness.is_dead(110.0)
    liveness.head_began_at = 110.0
    assert [liveness.is_dead(now) for now in (111.9, 112.1)] == [False, True]


def test_a_peer_that_does_not_read_is_dead_after_a_while(liveness: Liveness) -> None:
    liveness.has_greeted = True
    liveness.is_full_since = 110.0
    assert [liveness.is_dead(now) for now in (114.9, 115.1)] == [False, True]
    liveness.is_full_since = None
    assert not liveness.is_dead(115.1)


def test_a_silent_peer_is_pinged_once_and_is_dead_without_an_answer(liveness: Liveness) -> None:
    liveness.has_greeted = True
    assert [liveness.needs_ping(now) for now in (129.0, 131.0, 132.0)] == [False, True, False]
    assert [liveness.is_dead(now) for now in (150.9, 151.1)] == [False, True]
    liveness.received_at = 151.0
    assert not liveness.is_dead(160.0)
    assert [liveness.needs_ping(now) for now in (180.0, 182.0)] == [False, True]


def test_an_answer_in_the_same_millisecond_is_one(liveness: Liveness) -> None:
    """The clock of the loop has milliseconds, and a peer on the same machine takes less."""
    liveness.has_greeted = True
    assert liveness.needs_ping(131.0)
    liveness.received_at = 131.0
    assert [liveness.is_dead(now) for now in (132.0, 152.0)] == [False, False]
    assert liveness.needs_ping(162.0)


def test_a_connection_without_calls_is_idle_after_a_while(liveness: Liveness) -> None:
    assert [liveness.is_idle(now) for now in (174.0, 176.0)] == [False, True]
    liveness.has_calls()
    assert not liveness.is_idle(1000.0)
    liveness.has_no_calls(1000.0)
    assert [liveness.is_idle(now) for now in (1074.0, 1076.0)] == [False, True]


def test_a_connection_that_was_ended_is_cut_when_it_does_not_close(liveness: Liveness) -> None:
    liveness.has_greeted = True
    liveness.ended_at = 110.0
    assert [liveness.is_dead(now) for now in (110.9, 111.1)] == [False, True]


def test_pings_are_free_every_ten_seconds_and_after_an_answer(liveness: Liveness) -> None:
    assert not any(liveness.is_pinged_too_often(now) for now in (110.0, 120.0, 130.0, 140.0))
    found = [liveness.is_pinged_too_often(now) for now in (141.0, 142.0)]
    liveness.has_answered = True
    found += [liveness.is_pinged_too_often(now) for now in (143.0, 144.0, 145.0, 146.0)]
    assert found == [False, False, False, False, False, True]
