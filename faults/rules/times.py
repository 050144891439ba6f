"""Times: no poll returns a delayed, dead or expired item, or an item of a paused queue."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from faults.facts import Facts, Violation
from faults.history import Call


@dataclass(frozen=True, slots=True)
class _Delay:
    call: Call
    began_ms: float
    """The earliest time at which the delay may begin."""
    known_ms: float
    """Polls that began earlier may have got the item before it was delayed."""
    delay_ms: float


def early(facts: Facts) -> Iterator[Violation]:
    """No poll returns an item before its delay has passed."""
    for item, holds in facts.holds.items():
        delays: list[_Delay] = []
        origin = facts.origins.get(item)
        if origin is not None and origin.delay_ms > 0:
            delays.append(_Delay(origin.call, origin.began_ms, -inf, origin.delay_ms))
        for named in facts.named["fail"].get(item, ()):
            if named.is_done and named.detail[1] == "retried" and named.detail[0] > 0:
                call = named.call
                delays.append(_Delay(call, call.began_ms, call.ended_ms, named.detail[0]))
        rescheduled = [each for each in facts.named["reschedule"].get(item, ()) if each.may_be_done]
        for named in rescheduled:
            if named.is_done and named.detail > 0:
                call = named.call
                delays.append(_Delay(call, call.began_ms, call.ended_ms, named.detail))
        for delay in delays:
            until_ms = delay.began_ms + delay.delay_ms - facts.slack_ms
            for hold in holds:
                if hold.poll.began_ms < delay.known_ms or hold.poll.ended_ms >= until_ms:
                    continue
                if any(_may_come_between(each.call, delay.call, hold.poll) for each in rescheduled):
                    continue
                if not facts.is_step_within(delay.began_ms, hold.poll.ended_ms, forward=True):
                    text = "was given before its delay had passed"
                    yield Violation("early", item, text, (delay.call, hold.poll))


def _may_come_between(reschedule: Call, delay: Call, poll: Call) -> bool:
    """Whether the delay that ended at the poll may be that of another reschedule."""
    is_other = reschedule is not delay
    return (
        is_other and reschedule.ended_ms >= delay.began_ms and reschedule.began_ms <= poll.ended_ms
    )


def not_dead(facts: Facts) -> Iterator[Violation]:
    """No poll returns a dead letter, and it stays dead unless it may have been redriven."""
    for item, all_named in facts.named["fail"].items():
        for named in all_named:
            if not named.is_done or named.detail[1] != "died":
                continue
            died = named.call
            for hold in facts.holds.get(item, ()):
                is_after = hold.poll.began_ms > died.ended_ms
                if is_after and not may_be_redriven(facts, item, died, hold.poll):
                    yield Violation("not dead", item, "was given after it died", (died, hold.poll))
            state = facts.final.items[item].state if item in facts.final.items else "dead"
            if state != "dead" and not may_be_redriven(facts, item, died, None):
                yield Violation("not dead", item, f"died, and is {state} at the end", (died,))


def not_expired(facts: Facts) -> Iterator[Violation]:
    """No poll is the first to return an item after it expired."""
    for item, origin in facts.origins.items():
        if not origin.expires_ms:
            continue
        until_ms = origin.call.ended_ms + origin.expires_ms + facts.slack_ms
        for hold in facts.holds.get(item, ()):
            if hold.deliveries != 1 or hold.poll.began_ms <= until_ms:
                continue
            if may_be_redriven(facts, item, origin.call, hold.poll):
                continue
            if not facts.is_step_within(origin.began_ms, hold.poll.ended_ms, forward=False):
                text = "was given after it expired"
                yield Violation("not expired", item, text, (origin.call, hold.poll))


def may_be_redriven(facts: Facts, item: str, died: Call, poll: Call | None) -> bool:
    """Whether a redrive may have come between the two."""
    until_ms = inf if poll is None else poll.ended_ms
    return any(
        redrive.ended_ms >= died.began_ms and redrive.began_ms <= until_ms
        for redrive in facts.by_operation["redrive"]
        if not redrive.given("ids") or item in redrive.given("ids")
    )


def not_paused(facts: Facts) -> Iterator[Violation]:
    """A poll gets nothing while the queue is certainly paused."""
    pauses = facts.by_operation["pause"]
    for pause in pauses:
        if not pause.is_ok:
            continue
        others = [each for each in pauses if each is not pause]
        steps = [each for each in facts.by_operation["clock_step"] if each.arguments["ms"] > 0]
        ends_ms = [pause.began_ms + (pause.arguments["for_ms"] or inf)]
        ends_ms += [
            other.began_ms
            for other in [*others, *facts.by_operation["resume"], *steps]
            if other.ended_ms >= pause.began_ms
        ]
        until_ms = min(ends_ms) - facts.slack_ms
        for poll in facts.by_operation["poll"]:
            is_within = poll.began_ms >= pause.ended_ms and poll.ended_ms < until_ms
            if is_within and poll.answer.get("ids"):
                text = "was given while the queue was paused"
                yield Violation("not paused", poll.answer["ids"][0], text, (pause, poll))
