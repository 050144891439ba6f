"""Signals: calls that wait for something other than items, woken when it may have come."""

from queueber.service.loop import Future


class Signals:
    """The futures that wait, by what they wait for, in the order in which they came."""

    def __init__(self) -> None:
        self._futures: dict[object, dict[Future, None]] = {}
        self.total = 0

    def add(self, key: object, future: Future) -> None:
        self._futures.setdefault(key, {})[future] = None
        self.total += 1

    def discard(self, key: object, future: Future) -> None:
        waiting = self._futures.get(key)
        if waiting is not None and future in waiting:
            del waiting[future]
            self.total -= 1
            if not waiting:
                del self._futures[key]

    def fire(self, key: object) -> None:
        for future in list(self._futures.get(key, ())):
            if not future.done():
                future.set_result(None)

    def fire_all(self) -> None:
        for key in list(self._futures):
            self.fire(key)
