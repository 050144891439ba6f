"""Prints a history step by step, to find what went wrong."""

from collections.abc import Iterator, Mapping
from math import inf
from typing import Any

from faults.history import Call
from faults.simulation.world import Told


def lines_of(told: Told) -> Iterator[str]:
    steps: list[tuple[float, str]] = [(at_ms, f"    {text}") for at_ms, text in told.events]
    for call in told.history.calls:
        arguments = _values(call.arguments)
        steps.append((call.began_ms, f"{call.client}: {call.operation}({arguments})"))
        if call.ended_ms < inf:
            steps.append((call.ended_ms, _end(call)))
    # The sort is stable: events of the same time keep their order.
    for at_ms, text in sorted(steps, key=lambda step: step[0]):
        yield f"{at_ms:10.3f} ms  {text}"
    unknown = sum(call.ended_ms == inf for call in told.history.calls)
    yield (
        f"seed {told.seed}: {len(told.history.calls)} calls, {unknown} of unknown outcome, "
        f"{told.crashes} crashes"
    )
    yield from told.wrong or ["nothing is wrong"]


def _end(call: Call) -> str:
    answer = _values(call.answer)
    return f"{call.client}: {call.operation} {call.outcome.value} {answer}".rstrip()


def _values(named: Mapping[str, Any]) -> str:
    told = {name: value for name, value in named.items() if value not in ("", [], None)}
    return ", ".join(f"{name}={_short(value)}" for name, value in told.items())


def _short(value: object) -> str:
    """The last digits of an id, which differ between ids."""
    if isinstance(value, list):
        return "[" + ", ".join(_short(each) for each in value) + "]"
    if isinstance(value, str) and len(value) == 32:
        return f"..{value[-6:]}"
    return str(value)
