"""What the calls of a caller say of when a source was there."""

from math import inf
from typing import Any

from faults.history import TOPICS
from faults.routes.mirrors import Term
from faults.simulation.route_reading import terms_of
from faults.simulation.route_roles import LATE_MS, REROUTED
from tests.faults.told import Teller


class _Caller:
    def __init__(self) -> None:
        self.teller = Teller()

    def _call(self, at_ms: float, operation: str, after: int, up_to: int, **given: Any) -> None:
        answer = {"up_to": up_to} if up_to else None
        told = {"topic": REROUTED, "queue": "q", "on": "update", "after": after, **given}
        self.teller.call(at_ms, operation, told, answer, queue=TOPICS)

    def add(self, at_ms: float, after: int, up_to: int = 0, payload: str = "key") -> None:
        given = {"where": "", "partition_by": "", "payload": payload}
        self._call(at_ms, "add_source", after, up_to, **given)

    def drop(self, at_ms: float, after: int, up_to: int = 0) -> None:
        self._call(at_ms, "drop_source", after, up_to)

    def restart(self, at_ms: float, sequence: int) -> None:
        self.teller.call(at_ms, "restart", {}, {"sequence": sequence}, queue="")

    @property
    def terms(self) -> list[Term]:
        return terms_of(self.teller.history)

    @property
    def times(self) -> list[tuple[float, ...]]:
        return [(t.began, t.sure_from, t.sure_to, t.ended) for t in self.terms]


def test_a_source_is_there_for_sure_between_the_answers() -> None:
    caller = _Caller()
    caller.add(0, 3, 5)
    caller.add(10, 7, 8)
    caller.drop(20, 10, 12)
    caller.add(30, 14, 15, payload="full")

    assert caller.times == [(3, 5, 10, 12), (14, 15, inf, inf)]
    assert [each.way.payload for each in caller.terms] == ["key", "full"]


def test_a_call_without_an_answer_may_be_done_until_it_is_too_late() -> None:
    caller = _Caller()
    caller.add(0, 3)
    caller.drop(10, 5, 6)  # the add may come behind it
    caller.drop(20 + LATE_MS, 8, 9)
    caller.add(30 + LATE_MS, 10, 11)
    caller.drop(40 + LATE_MS, 13)
    caller.add(50 + LATE_MS, 15, 16)  # the drop may come behind it

    assert caller.times == [
        (3, inf, 5, 6), (5, inf, 8, 9), (10, 11, 13, 16), (15, 16, 16, inf)
    ]  # fmt: skip


def test_what_a_crash_loses_has_no_sequence() -> None:
    caller = _Caller()
    caller.add(0, 3, 9)
    caller.restart(10, 6)
    caller.drop(20, 8, 8)
    caller.restart(30, 7)

    assert caller.times == [(3, 6, 7, 7)]
