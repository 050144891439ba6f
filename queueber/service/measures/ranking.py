"""Which of many queues or topics are worth a sample or a history of their own."""

from collections.abc import Collection, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

_DECAY = 0.99
"""Of a score, at every look. At one look in 10 seconds, half of it is gone after 11 minutes."""
_MARGIN = 2.0
"""How much more active another must be to take a place: a small lead would make places flap."""


class Ranking(Generic[K]):
    """Scores that grow with activity and fade with time."""

    def __init__(self) -> None:
        self._scores: dict[K, float] = {}

    def __len__(self) -> int:
        return len(self._scores)

    def __contains__(self, key: object) -> bool:
        return key in self._scores

    def fade(self) -> None:
        scores = self._scores
        for key in scores:
            scores[key] *= _DECAY

    def add(self, key: K, activity: float) -> None:
        self._scores[key] = self._scores.get(key, 0.0) + activity

    def forget(self, key: K) -> None:
        self._scores.pop(key, None)

    def keep(self, keys: Collection[K]) -> None:
        """Forget all others."""
        if len(self._scores) > len(keys):
            self._scores = {key: self._scores[key] for key in keys if key in self._scores}

    def best(self, count: int) -> list[K]:
        scores = self._scores
        return sorted(scores, key=scores.__getitem__, reverse=True)[:count]

    def give_places(self, places: dict[K, None], places_max: int) -> None:
        """Bring `places` up to date: who has one keeps it unless another is far more active."""
        scores = self._scores
        for key in [each for each in places if each not in scores]:
            del places[key]
        if len(places) < places_max:
            others = [key for key in self.best(places_max) if key not in places]
            places.update(dict.fromkeys(others[: places_max - len(places)]))
        if len(scores) <= places_max:
            return
        by_score = sorted(places, key=scores.__getitem__)
        for candidate in self.best(places_max):
            if candidate not in places and scores[candidate] > _MARGIN * scores[by_score[0]]:
                del places[by_score.pop(0)]
                places[candidate] = None
