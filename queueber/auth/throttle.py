"""Wrong credentials cost whoever sends them time, more with each one from the same address.

Right ones are never slowed down: a guess and a program's credential may come from one address, such
as that of a gateway. Passwords are the exception. They can be guessed, so after some wrong ones for
a user from an address, no further one is looked at for a while.
"""

from dataclasses import dataclass

from queueber.auth.buckets import Bucket, Recent
from queueber.clock import Clock
from queueber.errors import Unavailable
from queueber.limits import SECOND_MS

_ADDRESSES_MAX = 10_000
"""Addresses and users that are remembered, about 200 bytes each."""
_FAILURES_MAX = 4
_FORGOTTEN_AFTER_MS = 10 * SECOND_MS
"""One failure is forgotten after each such time."""
_FIRST_DELAY_MS = 100
_DELAY_MS_MAX = SECOND_MS
"""Less than commands wait for a server: who mistypes a token must be told so."""
_PASSWORDS_AT_ONCE = 5
_PASSWORDS_PER_SECOND = 0.2
"""Wrong passwords of a user from an address: five at once, then one in five seconds."""
CHECKS_MAX = 16
"""Passwords that wait to be checked. One is checked at a time."""


@dataclass(slots=True)
class _Failures:
    """Of one address."""

    count: float = 0
    at_ms: int = 0


class Throttle:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._addresses = Recent(_Failures, _ADDRESSES_MAX)
        self._users = Recent(
            lambda: Bucket(_PASSWORDS_PER_SECOND, _PASSWORDS_AT_ONCE, clock.now_ms()),
            _ADDRESSES_MAX,
        )
        self.checks = 0
        """Passwords that are being checked."""

    def failed(self, host: str) -> int:
        """A wrong credential came from an address: how long to wait with the answer, in ms."""
        known, now_ms = self._addresses.get(host), self._clock.now_ms()
        count = max(0.0, known.count - (now_ms - known.at_ms) / _FORGOTTEN_AFTER_MS)
        known.count, known.at_ms = min(count + 1, _FAILURES_MAX), now_ms
        return min(_DELAY_MS_MAX, _FIRST_DELAY_MS << round(count))

    def check_password(self, host: str, user: str) -> None:
        """Refuse to look at a password after too many wrong ones."""
        wait_ms = self._users.get((host, user)).wait_ms(1, self._clock.now_ms())
        if wait_ms:
            raise Unavailable(
                "too many wrong passwords for this user; try again in a while",
                retry_after_ms=wait_ms,
            )
        if self.checks >= CHECKS_MAX:
            raise Unavailable(
                f"{self.checks} passwords are being checked, the limit; try again in a moment"
            )

    def wrong_password(self, host: str, user: str) -> None:
        self._users.get((host, user)).take(self._clock.now_ms())
