"""Turns: what can wait is done a little at a time, and less of it when it costs more."""

from collections.abc import Callable
from typing import Any

from queueber.rpc.fair_turns import TURN_SECONDS_MAX, FairTurns


class SteppedLoop:
    """Turns are taken one by one, and take as long as is said."""

    def __init__(self) -> None:
        self.now = 0.0
        self.soon: list[tuple[Callable[..., object], tuple[Any, ...]]] = []

    def time(self) -> float:
        return self.now

    def call_soon(self, callback: Callable[..., object], *args: Any) -> None:
        self.soon.append((callback, args))

    def turn(self) -> None:
        soon, self.soon = self.soon, []
        for callback, args in soon:
            callback(*args)


class Rig:
    def __init__(self) -> None:
        self.loop = SteppedLoop()
        self.turns = FairTurns(self.loop)  # type: ignore[arg-type]
        self.done: list[int] = []

    def go(self, number: int, cost: float = 0.0) -> Callable[[], None]:
        def go() -> None:
            self.done.append(number)
            self.loop.now += cost

        return go

    def in_turns(self) -> list[int]:
        """How many are done in each turn, to the end."""
        counts = []
        while self.loop.soon:
            before = len(self.done)
            self.loop.turn()
            counts.append(len(self.done) - before)
        return counts


def test_one_alone_goes_at_once() -> None:
    rig = Rig()

    rig.turns.run(rig.go(1))

    assert rig.done == [1]
    assert sum(rig.in_turns()) == 0


def test_many_go_in_order_a_few_in_every_third_turn() -> None:
    rig = Rig()
    for number in range(30):
        rig.turns.run(rig.go(number))

    assert rig.done == [0, 1, 2, 3]
    assert rig.in_turns() == [0, 0, 5, 0, 0, 6, 0, 0, 7, 0, 0, 8, 0, 0, 0]
    assert rig.done == list(range(30))


def test_those_that_cost_much_go_one_by_one() -> None:
    rig = Rig()
    for number in range(8):
        rig.turns.run(rig.go(number, cost=2 * TURN_SECONDS_MAX))

    assert [count for count in rig.in_turns() if count] == [2, 1, 1]
    assert rig.done == list(range(8))


def test_who_waits_goes_in_a_later_turn_even_if_there_is_room() -> None:
    rig = Rig()

    rig.turns.wait(rig.go(1))

    assert rig.done == []
    assert rig.in_turns()[:3] == [0, 0, 1]


def test_one_that_comes_later_does_not_overtake() -> None:
    rig = Rig()
    rig.turns.wait(rig.go(1))

    rig.turns.run(rig.go(2))
    rig.in_turns()

    assert rig.done == [1, 2]


def test_one_that_fails_takes_nobody_with_it() -> None:
    rig = Rig()

    def fail() -> None:
        raise ZeroDivisionError

    rig.turns.wait(fail)
    rig.turns.wait(rig.go(1))
    failures = 0
    while rig.loop.soon:
        try:
            rig.loop.turn()
        except ZeroDivisionError:
            failures += 1

    assert (failures, rig.done) == (1, [1])
