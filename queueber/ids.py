"""UUIDv7 ids (RFC 9562), made in bulk, each greater than the one before.

    48 bits  milliseconds since the epoch
     4 bits  version 7
    12 bits  random, new for each millisecond
     2 bits  variant
    62 bits  a counter that starts at a random place in the lower half of its range

Within a millisecond, and when the clock steps back, the counter goes on from the last id instead of
starting anew. So ids made by one source always rise, and a batch of them is written in key order.
"""

from random import Random

_COUNTER_BITS = 62
_COUNTER_LIMIT = 1 << _COUNTER_BITS
_VARIANT = 0b10 << _COUNTER_BITS
_STEP_MAX = 1 << 16


class IdSource:
    """Mints ids. Deterministic for a given `Random`."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._now_ms = -1
        self._head = bytes(8)
        self._counter = 0

    def continue_after(self, last_id: bytes) -> None:
        """Make every id from now on greater than `last_id`."""
        if last_id > self._head + (_VARIANT + self._counter).to_bytes(8):
            self._now_ms = made_at_ms(last_id)
            self._head = last_id[:8]
            self._counter = int.from_bytes(last_id[8:]) - _VARIANT

    def mint(self, count: int, now_ms: int) -> list[bytes]:
        """The next `count` ids, in order."""
        if now_ms > self._now_ms:
            self._start(now_ms)
        elif self._counter + count + _STEP_MAX >= _COUNTER_LIMIT:
            # Reached only after 2^61 ids in one millisecond of a clock that stands still.
            self._start(self._now_ms + 1)
        # The step keeps ids of neighbouring calls from being guessed by adding one.
        first = self._counter + 1 + self._random.getrandbits(15)
        self._counter = first + count
        head, start = self._head, _VARIANT + first
        return [head + n.to_bytes(8) for n in range(start, start + count)]

    def _start(self, now_ms: int) -> None:
        self._now_ms = now_ms
        self._head = ((now_ms << 16) | 0x7000 | self._random.getrandbits(12)).to_bytes(8)
        self._counter = self._random.getrandbits(_COUNTER_BITS - 1)


def made_at_ms(item_id: bytes) -> int:
    """When an id was made, by its own account."""
    return int.from_bytes(item_id[:6])
