"""Valid histories, damaged in a known way: the checker notices."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from functools import cache
from random import Random
from typing import TypeVar

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from faults.checker import check
from faults.facts import Facts
from faults.final_state import FinalState, FoundItem, FoundResult
from faults.history import Call, History, Outcome
from faults.rules.leases import alive_until_ms
from faults.simulation.faulty_server import QUEUES
from faults.simulation.quiet import quiet_logs
from faults.simulation.small_limits import small_limits
from faults.simulation.world import SLACK_MS, simulate

QUEUE = QUEUES[0]

T = TypeVar("T")


@cache
def _valid(seed: int) -> tuple[History, FinalState]:
    with quiet_logs(), small_limits():
        told = simulate(seed)
    assert told.wrong == []
    return told.history.of(QUEUE), told.final[QUEUE]


class Damage:
    """A history, its end, and what can be found in them to be damaged."""

    def __init__(self, seed: int, random: Random) -> None:
        history, final = _valid(seed)
        self.history = History(list(history.calls))
        self.final = deepcopy(final)
        self.facts = Facts(self.history, self.final, SLACK_MS)
        self._random = random

    def one_of(self, found: list[T]) -> T:
        assume(found)
        return self._random.choice(found)

    def ended(self) -> list[str]:
        """Items of which somebody was told that they have ended."""
        return sorted(i for i in self.facts.origins if any(e.is_done for e in self.facts.ends(i)))

    def put(self, call: Call) -> None:
        self.history.calls.append(call)

    def rules(self) -> set[str]:
        return {v.rule for v in check(self.history, {QUEUE: self.final}, slack_ms=SLACK_MS)}


def lose_an_item(damage: Damage) -> str:
    assume(not damage.facts.by_operation["purge"])
    assume(not damage.final.dead_age_ms)
    present = sorted(set(damage.final.items) & set(damage.facts.origins))
    del damage.final.items[damage.one_of([i for i in present if not any(damage.facts.ends(i))])]
    return "lost"


def revive_an_item(damage: Damage) -> str:
    item = damage.one_of(damage.ended())
    damage.final.items[item] = FoundItem(damage.facts.origins[item].contents, "ready")
    return "revived"


def change_contents(damage: Damage) -> str:
    item = damage.one_of(sorted(set(damage.final.items) & set(damage.facts.origins)))
    damage.final.items[item] = replace(damage.final.items[item], contents="damaged")
    return "contents"


def make_an_item_appear(damage: Damage) -> str:
    damage.final.items["00" * 16] = FoundItem("of nobody", "ready")
    return "phantom"


def end_an_item_again(damage: Damage) -> str:
    item = damage.one_of(damage.ended())
    at_ms = max(call.began_ms for call in damage.history.calls) + 1
    damage.put(
        Call("x", "cancel", at_ms, at_ms, Outcome.OK, {"ids": [item]}, {"done": [True]}, QUEUE)
    )
    return "ended twice"


def lease_an_item_twice(damage: Damage) -> str:
    """At the very moment in which another has got it."""
    facts = damage.facts
    polls = [
        hold.poll
        for item, holds in facts.holds.items()
        for hold in holds
        if alive_until_ms(facts, item, hold) > hold.poll.ended_ms
        # Nobody extends the second lease.
        and hold.poll.began_ms + hold.poll.arguments["lease_ms"] - facts.slack_ms
        > hold.poll.ended_ms
    ]
    assume(not damage.facts.by_operation["clock_step"])
    poll = damage.one_of(polls)
    damage.put(replace(poll, answer={**poll.answer, "lease": "ff" * 16}))
    return "overlap"


def double_a_result(damage: Damage) -> str:
    result = damage.one_of(list(damage.final.results))
    damage.final.results = [*damage.final.results, replace(result, offset=10_000)]
    return "results"


def lose_a_result(damage: Damage) -> str:
    assume(damage.final.first_offset == 0)
    completed = damage.facts.named["complete"]
    acknowledged = {item for item, named in completed.items() if any(n.is_done for n in named)}
    seen = {
        result[1]
        for call in damage.facts.by_operation["read_results"]
        for result in call.answer.get("results", ())
    }
    gone = damage.one_of([r for r in damage.final.results if r.id in acknowledged - seen])
    damage.final.results = [each for each in damage.final.results if each != gone]
    return "results"


def invent_a_result(damage: Damage) -> str:
    item = damage.one_of(sorted(damage.final.items))
    damage.final.results = [*damage.final.results, FoundResult(10_000, item, "of nobody")]
    return "result of nobody"


def miscount_a_receipt(damage: Damage) -> str:
    batch = damage.one_of(sorted(damage.final.receipts))
    receipt = damage.final.receipts[batch]
    damage.final.receipts = {batch: replace(receipt, done=receipt.done + 1)}
    return "sums"


def miscount_a_total(damage: Damage) -> str:
    damage.final.totals = {"added": damage.final.totals["added"] + 1000}
    return "totals"


def answer_a_repeat_otherwise(damage: Damage) -> str:
    adds = damage.facts.by_operation["add"]
    call = damage.one_of([c for c in adds if c.given("producer") and c.answer.get("ids")])
    ids = ["00" * 16] * len(call.answer["ids"])
    damage.put(replace(call, answer={**call.answer, "ids": ids}))
    return "repeat"


DAMAGES: list[Callable[[Damage], str]] = [
    lose_an_item,
    revive_an_item,
    change_contents,
    make_an_item_appear,
    end_an_item_again,
    lease_an_item_twice,
    double_a_result,
    lose_a_result,
    invent_a_result,
    miscount_a_receipt,
    miscount_a_total,
    answer_a_repeat_otherwise,
]


@pytest.fixture(autouse=True, scope="module")
def _forget_histories() -> Iterator[None]:
    yield
    _valid.cache_clear()


@pytest.mark.slow
@pytest.mark.parametrize("break_it", DAMAGES, ids=lambda damage: damage.__name__)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(1, 60), chance=st.randoms(use_true_random=False))
def test_damage_of_a_valid_history_is_noticed(
    break_it: Callable[[Damage], str], seed: int, chance: Random
) -> None:
    damage = Damage(seed, chance)

    rule = break_it(damage)

    assert rule in damage.rules()
