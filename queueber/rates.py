"""How often things happen each second, from totals that only rise."""

from collections import deque
from collections.abc import Collection, Sequence

_SAMPLES = 6
"""Of a total each second: rates are those of the last 5 seconds."""
_SECONDS_MIN = 0.2
"""Two samples that are closer to each other say nothing."""

Sample = tuple[float, Sequence[int]]


class Rates:
    """Rates of several totals of each queue or topic."""

    def __init__(self) -> None:
        self._samples: dict[str, deque[Sample]] = {}

    def of(self, name: str, at: float, totals: Sequence[int]) -> tuple[float, ...]:
        """Add the totals at a time in seconds; the rates since the oldest sample, 0 at first."""
        samples = self._samples.setdefault(name, deque(maxlen=_SAMPLES))
        if samples and any(map(int.__lt__, totals, samples[-1][1])):
            samples.clear()  # deleted and created anew
        samples.append((at, totals))
        began_at, first = samples[0]
        seconds = at - began_at
        if seconds < _SECONDS_MIN:
            return (0.0,) * len(totals)
        return tuple(
            round((last - before) / seconds, 2) for last, before in zip(totals, first, strict=True)
        )

    def keep(self, names: Collection[str]) -> None:
        """Forget all others."""
        for name in [each for each in self._samples if each not in names]:
            del self._samples[name]
