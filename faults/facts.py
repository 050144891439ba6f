"""The facts of a history by item and by lease, for the rules."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, TypeAlias

from faults.final_state import FinalState
from faults.history import ANY_STATE, Call, History

ENDINGS = ("remove", "complete", "cancel")
"""Operations after which an item is gone."""
UNDER_LEASE = ("remove", "complete", "release", "fail")
_REPEATED = ("release", "cancel", "reschedule", "purge", "redrive")

FOREVER_MS = inf

Turn: TypeAlias = tuple[Any, ...]
"""A producer's id, epoch and sequence."""


@dataclass(frozen=True, slots=True)
class Violation:
    rule: str
    item: str
    """The item, or the batch, key, producer or total."""
    text: str
    calls: tuple[Call, ...] = ()
    """The calls that prove it."""

    def __str__(self) -> str:
        lines = [f"{self.rule}: {self.item}: {self.text}", *(f"    {call}" for call in self.calls)]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Named:
    """One item that a call named."""

    call: Call
    lease: str = ""
    is_done: bool | None = None
    """Whether the server did it, by its answer; None if the outcome is unknown."""
    detail: Any = None
    """The result of a complete; the delay and the outcome of a fail; the delay of a reschedule."""

    @property
    def may_be_done(self) -> bool:
        return self.is_done is not False


@dataclass(frozen=True, slots=True)
class Hold:
    """An item that a poll returned."""

    poll: Call
    lease: str
    contents: str
    deliveries: int = 0
    """How often it was given by then, as the poll said; 0: it was not recorded."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The add that stored an item, if that add was answered."""

    call: Call
    began_ms: float
    """The begin of the first attempt at that add."""
    contents: str
    delay_ms: float
    key: str
    batch: str
    expires_ms: float = 0
    """0: it does not expire."""


@dataclass(frozen=True, slots=True)
class Duplicate:
    """The answer to an add of an item whose key the queue remembered."""

    call: Call
    item: str
    key: str


class Facts:
    def __init__(self, history: History, final: FinalState, slack_ms: float) -> None:
        """`slack_ms` is how much the server's clock may differ over the length of a lease."""
        self.final = final
        self.slack_ms = slack_ms
        self.by_operation: dict[str, list[Call]] = defaultdict(list)
        self.named: dict[str, dict[str, list[Named]]] = defaultdict(lambda: defaultdict(list))
        """By operation and item: the calls that named it, except those refused as a whole."""
        self.extends: dict[str, list[tuple[Call, float, bool | None]]] = defaultdict(list)
        """By lease: the call, the duration, and whether the server did it."""
        self.hung_up: dict[str, Call] = {}
        """By lease: the end of the connection that it was bound to."""
        self.holds: dict[str, list[Hold]] = defaultdict(list)
        self.origins: dict[str, Origin] = {}
        self.duplicates: list[Duplicate] = []
        self.attempts: dict[Turn, list[Call]] = defaultdict(list)
        """All attempts of a producer at one call, sorted by begin."""
        self.unanswered: list[Call] = []
        """Adds of unknown outcome; of a producer's repeated attempts only the first."""
        for call in history.calls:
            if call.may_have_happened:
                self.by_operation[call.operation].append(call)
        self._read_adds()
        self._read_polls()
        for operation in (*UNDER_LEASE, "cancel", "reschedule"):
            for call in self.by_operation[operation]:
                self._read_named(call)
        for call in self.by_operation["extend"]:
            self._read_extend(call)
        for call in self.by_operation["hang_up"]:
            for lease in self._bound_to(call):
                self.hung_up.setdefault(lease, call)

    # --- reading the history ----------------------------------------------------------------------

    def _read_adds(self) -> None:
        adds = sorted(self.by_operation["add"], key=lambda add: add.began_ms)
        for call in adds:
            if turn := tuple(call.given("producer")):
                self.attempts[turn].append(call)
        for call in adds:
            attempts = self.attempts.get(tuple(call.given("producer")), [call])
            is_answered = any(each.answer.get("ids") for each in attempts)
            if not call.is_ok and not is_answered and attempts[0] is call:
                self.unanswered.append(call)
            began_ms = attempts[0].began_ms
            contents, delays = call.given("contents"), call.given("delays_ms")
            keys, expires = call.given("keys"), call.given("expires_ms")
            duplicates = call.answer.get("duplicates") or ()
            for at, item in enumerate(call.answer.get("ids", ())):
                if duplicates and duplicates[at]:
                    self.duplicates.append(Duplicate(call, item, keys[at] if keys else ""))
                    continue
                self.origins.setdefault(
                    item,
                    Origin(
                        call,
                        began_ms,
                        contents[at],
                        delays[at] if delays else 0,
                        keys[at] if keys else "",
                        call.arguments.get("batch", ""),
                        expires[at] if expires else 0,
                    ),
                )

    def _read_polls(self) -> None:
        for call in self.by_operation["poll"]:
            lease, ids = call.answer.get("lease", ""), call.answer.get("ids", ())
            told = call.answer.get("deliveries") or [0] * len(ids)
            for item, contents, deliveries in zip(
                ids, call.answer.get("contents", ()), told, strict=True
            ):
                self.holds[item].append(Hold(call, lease, contents, deliveries))

    def _read_named(self, call: Call) -> None:
        ids, leases = call.given("ids"), call.given("leases")
        results, delays = call.given("results"), call.given("delays_ms")
        outcomes = call.answer.get("outcomes", ())
        done = call.answer.get("done") or [outcome != "refused" for outcome in outcomes]
        of_operation = self.named[call.operation]
        seen: set[str] = set()
        for at, item in enumerate(ids):
            if item in seen:  # the answer for an item that is named twice is at its first position
                continue
            seen.add(item)
            detail = results[at] if results else None
            if call.operation == "fail":
                detail = (delays[at] if delays else -1, outcomes[at] if outcomes else "")
            elif call.operation == "reschedule":
                detail = delays[at]
            is_done = bool(done[at]) if call.is_ok else None
            if is_done is False and self.may_be_a_repeat(call):
                is_done = None
            lease = leases[at] if leases else ""
            of_operation[item].append(Named(call, lease, is_done, detail))

    def may_be_a_repeat(self, call: Call) -> bool:
        """Whether a client may have sent the call twice, because its connection was lost. What the
        first one did, the answer to the second says was not done: the lease holds nothing then, and
        the item is gone or where it should be."""
        return call.operation in _REPEATED and any(
            restart.began_ms <= call.ended_ms and call.began_ms <= restart.ended_ms
            for restart in self.by_operation["restart"]
        )

    def _read_extend(self, call: Call) -> None:
        done = call.answer.get("done", ())
        for at, lease in enumerate(call.given("leases")):
            is_done = bool(done[at]) if call.is_ok else None
            self.extends[lease].append((call, call.given("leases_ms")[at], is_done))

    def _bound_to(self, hang_up: Call) -> Sequence[str]:
        if "leases" in hang_up.arguments:
            return hang_up.given("leases")
        polls = [poll for poll in self.by_operation["poll"] if poll.client == hang_up.client]
        return [
            poll.answer["lease"] for poll in polls if poll.is_ok and poll.arguments.get("bound")
        ]

    # --- what the rules ask -----------------------------------------------------------------------

    def ends(self, item: str) -> Iterator[Named]:
        """The calls that named an item and have, or may have, ended it."""
        for operation in ENDINGS:
            for named in self.named[operation].get(item, ()):
                if named.may_be_done:
                    yield named

    def under_lease(self, item: str) -> Iterator[Named]:
        """The calls that named an item and its lease, with any answer."""
        for operation in UNDER_LEASE:
            yield from self.named[operation].get(item, ())

    def unanswered_of_key(self, key: str, until_ms: float) -> list[Call]:
        """Unanswered adds of the key that had begun by then, in order."""
        adds = (add for add in self.unanswered if add.began_ms <= until_ms)
        return [add for add in adds if key in add.given("keys")]

    def purges(self, *states: str) -> list[Call]:
        """The calls that took, or may have taken, items of one of the states."""
        return [
            call
            for call in self.by_operation["purge"]
            if call.arguments["state"] in (*states, ANY_STATE) and call.answer.get("count") != 0
        ]

    def is_step_within(self, start_ms: float, stop_ms: float, *, forward: bool) -> bool:
        """Whether the server's clock may have stepped in that direction meanwhile."""
        return any(
            step.began_ms <= stop_ms and step.ended_ms >= start_ms
            for step in self.by_operation["clock_step"]
            if (step.arguments["ms"] > 0) == forward
        )

    def server_ms_max(self) -> float:
        """The longest time between the two by the server's clock."""
        calls = [call for calls in self.by_operation.values() for call in calls]
        times = [time for call in calls for time in (call.began_ms, call.ended_ms) if time < inf]
        steps: list[float] = [step.arguments["ms"] for step in self.by_operation["clock_step"]]
        return max(times, default=0) - min(times, default=0) + sum(ms for ms in steps if ms > 0)

    def seen(self) -> Iterator[tuple[str, str, Call | None]]:
        """Each appearance of an item with its contents, in a call or in the final state."""
        for item, holds in self.holds.items():
            for hold in holds:
                yield item, hold.contents, hold.poll
        for item, found in self.final.items.items():
            yield item, found.contents, None
