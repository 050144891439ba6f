"""Open-loop callers: they send calls at a given rate, without waiting for answers.

Each call is encoded once and sent as bytes, so that one process can offer several times what a
server can handle. A caller whose call is refused backs off, as clients do.
"""

import contextlib
import selectors
import time
from collections import deque
from dataclasses import dataclass, field
from random import Random
from statistics import quantiles

from faults.hostile.messages import bootstrap, call, finish
from faults.hostile.raw import Raw

_MARK = b"\xde\xad\xbe\xef"
"""A placeholder for the number of a question."""
_OUTSTANDING_MAX = 200
"""Most unanswered calls of one connection; further ones are not sent."""
_OVERLOADED = ("UNAVAILABLE: ", "RESOURCE_EXHAUSTED: ")
_BACKOFF_SECONDS_FIRST = 0.02
_BACKOFF_SECONDS_MAX = 2.0


@dataclass(slots=True)
class Tally:
    """Counts of the calls in a period."""

    seconds: float = 0.0
    offered: int = 0
    held_back: int = 0
    """Not sent: the caller was backing off, or too many of its calls were not answered."""
    refused: int = 0
    failed: list[str] = field(default_factory=list)
    """Error texts of calls that were refused for another reason than overload."""
    took: list[float] = field(default_factory=list)
    """Seconds that each accepted call took."""

    @property
    def rate(self) -> float:
        return len(self.took) / self.seconds

    def ms(self, percent: int) -> float:
        return 1000 * quantiles(self.took, n=100)[percent - 1] if len(self.took) > 1 else 0.0


class Caller:
    """One connection that adds items at a steady rate."""

    def __init__(self, address: str, request: bytes, random: Random) -> None:
        self.raw = Raw(address)
        self.raw.send(bootstrap(0))
        self._request = request
        self._random = random
        self._out = bytearray()
        self._began: dict[int, float] = {}
        self.accepted = 0
        self._question = 0
        self._quiet_until = 0.0
        self._backoff = _BACKOFF_SECONDS_FIRST
        self.raw.socket.setblocking(False)

    @property
    def outstanding(self) -> int:
        return len(self._began)

    def offer(self, now: float, tally: Tally) -> None:
        tally.offered += 1
        if now < self._quiet_until or len(self._began) >= _OUTSTANDING_MAX:
            tally.held_back += 1
            return
        self._question = self._question % 1_000_000 + 1
        self._began[self._question] = now
        self._out += self._request.replace(_MARK, self._question.to_bytes(4, "little"), 1)

    def send(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._out:
                del self._out[: self.raw.socket.send(self._out)]

    def hear(self, now: float, tally: Tally) -> None:
        for question, refusal in self.raw.outcomes():
            began = self._began.pop(question, None)
            if began is None:
                continue
            self._out += finish(question)
            if refusal:
                tally.refused += 1
                if not any(code in refusal for code in _OVERLOADED):
                    tally.failed.append(refusal)
                if now >= self._quiet_until:
                    self._quiet_until = now + self._backoff * self._random.uniform(0.5, 1.0)
                    self._backoff = min(2 * self._backoff, _BACKOFF_SECONDS_MAX)
            else:
                self.accepted += 1
                tally.took.append(now - began)
                self._backoff = _BACKOFF_SECONDS_FIRST


def add_request(items: int, size: int) -> bytes:
    """An add whose question is `_MARK`."""
    made = call(int.from_bytes(_MARK, "little"), "add", req={"contents": [bytes(size)] * items})
    assert made.count(_MARK) == 1
    return made


class Load:
    """Several callers that offer one load together."""

    def __init__(self, address: str, connections: int, *, items: int, size: int) -> None:
        request = add_request(items, size)
        self._callers = deque(
            Caller(address, request, Random(number)) for number in range(connections)
        )
        self._selector = selectors.DefaultSelector()
        for caller in self._callers:
            self._selector.register(caller.raw.socket, selectors.EVENT_READ, caller)

    def offer(self, rate: float, seconds: float) -> Tally:
        """Offer `rate` calls a second for `seconds`."""
        tally = Tally(seconds)
        started = time.monotonic()
        while (now := time.monotonic()) < started + seconds:
            for _ in range(int((now - started) * rate) - tally.offered):
                caller = self._callers[0]
                self._callers.rotate(-1)
                caller.offer(now, tally)
            self._turn(tally, 0.001)
        return tally

    def saturate(self, seconds: float) -> Tally:
        """Offer as much as the server answers: every caller always has a few calls under way."""
        tally = Tally(seconds)
        ends_at = time.monotonic() + seconds
        while (now := time.monotonic()) < ends_at:
            for caller in self._callers:
                for _ in range(2 - caller.outstanding):
                    caller.offer(now, tally)
            self._turn(tally, 0.001)
        return tally

    @property
    def accepted(self) -> int:
        """Accepted calls since the start."""
        return sum(caller.accepted for caller in self._callers)

    @property
    def outstanding(self) -> int:
        return sum(caller.outstanding for caller in self._callers)

    def drain(self, seconds: float) -> None:
        """Wait for outstanding answers."""
        give_up_at = time.monotonic() + seconds
        while self.outstanding and time.monotonic() < give_up_at:
            self._turn(Tally(1.0), 0.01)

    def _turn(self, tally: Tally, seconds: float) -> None:
        for caller in self._callers:
            caller.send()
        for key, _ in self._selector.select(seconds):
            key.data.hear(time.monotonic(), tally)

    def close(self) -> None:
        self._selector.close()
        for caller in self._callers:
            caller.raw.socket.close()
