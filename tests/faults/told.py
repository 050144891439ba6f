"""Histories made by hand: one call a line, a millisecond long unless it says otherwise."""

from math import inf
from typing import Any

from faults.checker import check
from faults.final_state import FinalState
from faults.history import Call, History, Outcome

LEASE_MS = 100


class Teller:
    def __init__(self) -> None:
        self.history = History()

    def call(
        self,
        at_ms: float,
        operation: str,
        arguments: dict[str, Any],
        answer: dict[str, Any] | None = None,
        *,
        lasts_ms: float = 1,
        queue: str = "default",
        client: str = "somebody",
    ) -> Call:
        """An answer of None: it was lost."""
        is_ok = answer is not None
        told = Call(
            client,
            operation,
            at_ms,
            at_ms + lasts_ms if is_ok else inf,
            Outcome.OK if is_ok else Outcome.UNKNOWN,
            arguments,
            answer or {},
            queue,
        )
        self.history.calls.append(told)
        return told

    def refused(self, at_ms: float, operation: str, arguments: dict[str, Any]) -> None:
        self.history.calls.append(
            Call("somebody", operation, at_ms, at_ms + 1, Outcome.REFUSED, arguments)
        )

    def add(self, at_ms: float, *items: str, is_lost: bool = False, **arguments: Any) -> None:
        """Items have contents that begin as their names do."""
        contents = [contents_of(item) for item in items]
        answer = None if is_lost else {"ids": list(items), "duplicates": []}
        self.call(at_ms, "add", {"contents": contents, **arguments}, answer)

    def poll(
        self,
        at_ms: float,
        lease: str,
        *items: str,
        lease_ms: float = LEASE_MS,
        lasts_ms: float = 1,
        deliveries: int = 0,
    ) -> None:
        contents = [contents_of(item) for item in items]
        answer: dict[str, Any] = {"lease": lease, "ids": list(items), "contents": contents}
        if deliveries:
            answer["deliveries"] = [deliveries] * len(items)
        self.call(at_ms, "poll", {"lease_ms": lease_ms}, answer, lasts_ms=lasts_ms)

    def outcome(
        self, at_ms: float, operation: str, lease: str, item: str, *, done: bool | None = True
    ) -> None:
        """Remove, complete, release; what is not known to be done was lost."""
        arguments: dict[str, Any] = {"ids": [item], "leases": [lease]}
        if operation == "complete":
            arguments["results"] = [result_of(item)]
        answer = None if done is None else {"done": [done]}
        self.call(at_ms, operation, arguments, answer)

    def fail(
        self, at_ms: float, lease: str, item: str, outcome: str, *, delay_ms: float = -1
    ) -> None:
        arguments = {"ids": [item], "leases": [lease], "delays_ms": [delay_ms]}
        self.call(at_ms, "fail", arguments, {"outcomes": [outcome]})

    def rules(self, final: FinalState) -> set[str]:
        """The rules that are broken."""
        return {violation.rule for violation in check(self.history, {"default": final})}


def contents_of(item: str) -> str:
    return f"contents of {item}"


def result_of(item: str) -> str:
    return f"result of {item}"
