"""Token buckets: so much a second, and a second's worth at once after a pause."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from queueber.limits import SECOND_MS

T = TypeVar("T")


class Bucket:
    """Holds up to `burst`, and fills again at `per_second`. May be overdrawn by what was used
    before its size was known; nothing is left then until that is made up for."""

    __slots__ = ("_at_ms", "_burst", "_left", "_per_ms")

    def __init__(self, per_second: float, burst: float, now_ms: int) -> None:
        self._per_ms = per_second / SECOND_MS
        self._burst = burst
        self._left = burst
        self._at_ms = now_ms

    def _fill(self, now_ms: int) -> None:
        if now_ms > self._at_ms:
            self._left = min(self._burst, self._left + (now_ms - self._at_ms) * self._per_ms)
            self._at_ms = now_ms

    def take(self, now_ms: int) -> bool:
        """Take one; False if there is none."""
        self._fill(now_ms)
        if self._left < 1:
            return False
        self._left -= 1
        return True

    def use(self, amount: float) -> None:
        """Use what was used already."""
        self._left -= amount

    def wait_ms(self, wanted: float, now_ms: int) -> int:
        """How long until there is as much; 0: there is now."""
        self._fill(now_ms)
        missing = min(wanted, self._burst) - self._left
        return 0 if missing <= 0 else 1 + int(missing / self._per_ms)


class Recent(Generic[T]):
    """Objects by key, made when they are first asked for. The least recently used ones are
    forgotten when there are too many."""

    def __init__(self, make: Callable[[], T], count_max: int) -> None:
        self._make = make
        self._count_max = count_max
        self._kept: OrderedDict[Hashable, T] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: Hashable) -> T:
        found = self._kept.get(key)
        if found is None:
            if len(self._kept) >= self._count_max:
                self._kept.popitem(last=False)
            found = self._kept[key] = self._make()
        else:
            self._kept.move_to_end(key)
        return found
