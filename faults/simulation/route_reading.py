"""Reads the topic whose sources come and go, and what the calls say of when each was there.

A call notes the last sequence that the server had when it began and when it was answered. What a
crash loses has sequences that others get after it: so no note says more than the sequence with
which a later run of the server began.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, TypeAlias

from faults.history import TOPICS, Call, History
from faults.routes.mirrors import Change, Term, Way, check_mirror
from faults.routes.stored import read_messages
from faults.simulation.route_roles import (
    ALL_CHANGES,
    BY_CHANGE,
    FIRST_ATTEMPTS,
    LATE_MS,
    REROUTED,
    ROUTED,
)
from queueber.engine.open import Engine

_Place: TypeAlias = tuple[str, str]
"""Queue and kind of change."""


def check_rerouted(engine: Engine, history: History, now_ms: int) -> list[str]:
    """What is wrong with the topic whose sources come and go."""
    topic = engine.topics.get(REROUTED, now_ms)
    truth = read_messages(engine, engine.topics.get(ROUTED, now_ms))
    found = read_messages(engine, topic)
    return check_mirror(REROUTED, truth, found, topic.partitions, terms_of(history))


def terms_of(history: History) -> list[Term]:
    """When each source of the topic was there. One caller makes all calls, one after the other."""
    restarts = [call for call in history.calls if call.operation == "restart"]
    calls = [
        call
        for call in history.calls
        if call.operation in ("add_source", "drop_source")
        and call.queue == TOPICS
        and call.arguments["topic"] == REROUTED
        and call.may_have_happened
    ]
    calls.sort(key=lambda call: call.began_ms)
    gave_up_ms = [*(after.began_ms for after in calls[1:]), inf]
    places: dict[_Place, _Source] = defaultdict(_Source)
    for call, late_since_ms in zip(calls, gave_up_ms, strict=False):
        given = call.arguments
        ons = [given["on"]] if given["on"] else [on.value for on in ALL_CHANGES]
        for on in ons:
            place = places[given["queue"], on]
            place.forget_late(call, restarts)
            if call.operation == "add_source":
                term = Term(given["queue"], on, _way(given), _after(call, restarts), inf)
                place.added(call, term, _up_to(call, restarts))
            else:
                place.dropped(call, _after(call, restarts), _up_to(call, restarts))
            if not call.is_ok:
                place.late_since_ms = late_since_ms
    return [term for place in places.values() for term in (*place.past, *place.present)]


def _after(call: Call, restarts: list[Call]) -> float:
    return _kept(call.arguments["after"], call.began_ms, restarts)


def _up_to(call: Call, restarts: list[Call]) -> float:
    return _kept(call.answer.get("up_to", inf), call.ended_ms, restarts)


def _kept(noted: float, at_ms: float, restarts: list[Call]) -> float:
    """A sequence that was noted at a time, without what later crashes lost."""
    begins = [each.answer["sequence"] for each in restarts if each.is_ok and each.ended_ms >= at_ms]
    return float(min([noted, *begins]))


def _way(given: Mapping[str, Any]) -> Way:
    way = Way(given["payload"])
    if given["where"] == FIRST_ATTEMPTS:
        way = replace(way, matches=_is_first)
    return replace(way, partition_text=_word) if given["partition_by"] == BY_CHANGE else way


def _is_first(change: Change) -> bool:
    return change.event.own["attempt"] == "1"


def _word(change: Change) -> str:
    return change.event.own["change"]


@dataclass(slots=True)
class _Source:
    """What the calls say of one place. A call without an answer may be done later, too."""

    past: list[Term] = field(default_factory=list)
    present: list[Term] = field(default_factory=list)
    """Those that are there, or may be."""
    late_adds: list[Term] = field(default_factory=list)
    has_late_drop: bool = False
    late_since_ms: float = 0
    """When the caller had given up the last of them."""

    def forget_late(self, call: Call, restarts: list[Call]) -> None:
        """What was sent long ago, or to another run of the server, has arrived or never will."""
        since = self.late_since_ms
        if call.began_ms > since + LATE_MS or any(
            since < each.began_ms <= each.ended_ms <= call.began_ms for each in restarts
        ):
            self.late_adds, self.has_late_drop = [], False

    def added(self, call: Call, term: Term, up_to: float) -> None:
        if not call.is_ok:
            self.present.append(term)
            self.late_adds.append(term)
            return
        for each in self.present:
            if each.way == term.way and each.sure_from < inf and each.sure_to == inf:
                return  # it is there for sure, since before
        self._end(term.began, up_to)
        self.present = [replace(term, sure_from=up_to)]
        if self.has_late_drop:
            self.present = [replace(term, sure_from=up_to, sure_to=up_to), *self._again(term.began)]

    def dropped(self, call: Call, after: float, up_to: float) -> None:
        if not call.is_ok:
            self.present = [
                replace(each, sure_to=min(each.sure_to, after)) for each in self.present
            ]
            self.has_late_drop = True
            return
        self._end(after, up_to)
        self.present = self._again(after)

    def _end(self, after: float, up_to: float) -> None:
        self.past += [
            replace(each, sure_to=min(each.sure_to, after), ended=up_to) for each in self.present
        ]

    def _again(self, began: float) -> list[Term]:
        """Those whose calls may come only now."""
        return [replace(each, began=began) for each in self.late_adds]
