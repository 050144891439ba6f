"""Bytes that callers have not read are bounded: the worst of them are hung up on."""

import pytest

from queueber.gateway.problems import Problem
from queueber.gateway.unread import LARGE_BYTES, UnreadAnswers
from queueber.limits import MIB


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Caller:
    def __init__(self) -> None:
        self.is_cut = False

    def hang_up(self) -> None:
        self.is_cut = True


def test_what_is_read_counts_no_more() -> None:
    clock = Clock()
    held, caller = UnreadAnswers(10 * MIB, clock), Caller()
    held.change(caller, MIB)
    held.change(caller, MIB)
    assert held.used == 2 * MIB

    held.change(caller, -MIB)
    assert held.used == MIB
    held.forget(caller)
    held.forget(caller)
    held.change(caller, -MIB)  # its answer notices later that the caller is gone

    assert (held.used, caller.is_cut) == (0, False)


def test_above_the_limit_those_with_the_most_who_waited_longest_are_cut() -> None:
    clock = Clock()
    held = UnreadAnswers(10 * MIB, clock)
    old_small, old_large, new_large = Caller(), Caller(), Caller()
    held.change(old_small, MIB)
    held.change(old_large, 4 * MIB)
    clock.now += 5
    held.change(new_large, 6 * MIB)

    assert [each.is_cut for each in (old_small, old_large, new_large)] == [False, True, False]
    assert held.used == 7 * MIB


def test_the_limit_holds_though_nobody_has_waited() -> None:
    clock = Clock()
    held, callers = UnreadAnswers(10 * MIB, clock), [Caller() for _ in range(100)]
    for caller in callers:
        held.change(caller, MIB)
        assert held.used <= 10 * MIB

    assert sum(not each.is_cut for each in callers) == 10


def test_a_large_answer_is_refused_while_callers_may_still_read() -> None:
    clock = Clock()
    held, caller = UnreadAnswers(2 * LARGE_BYTES, clock), Caller()
    held.make_room()
    held.change(caller, LARGE_BYTES + 1)
    with pytest.raises(Problem, match="not read") as caught:
        held.make_room()

    assert (caught.value.status, caught.value.headers) == (503, {"retry-after": "1"})
    assert not caller.is_cut


def test_a_large_answer_gets_the_room_of_those_who_do_not_read() -> None:
    clock = Clock()
    held, slow, other = UnreadAnswers(2 * LARGE_BYTES, clock), Caller(), Caller()
    held.change(slow, LARGE_BYTES)
    clock.now += 0.5
    held.change(other, MIB)
    clock.now += 0.6

    held.make_room()

    assert (slow.is_cut, other.is_cut, held.used) == (True, False, MIB)
