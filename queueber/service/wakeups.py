"""Wakeups: calls that wait for something other than items, woken when it may have come."""

from queueber.service.loop import Future


class Wakeups:
    """The futures that wait, by what they wait for, in the order in which they came."""

    def __init__(self) -> None:
        self._futures: dict[object, dict[Future, None]] = {}

    def add(self, key: object, future: Future) -> None:
        self._futures.setdefault(key, {})[future] = None

    def discard(self, key: object, future: Future) -> None:
        waiting = self._futures.get(key)
        if waiting is not None and future in waiting:
            del waiting[future]
            if not waiting:
                del self._futures[key]

    def fire(self, key: object) -> None:
        for future in list(self._futures.get(key, ())):
            if not future.done():
                future.set_result(None)

    def fire_all(self) -> None:
        for key in list(self._futures):
            self.fire(key)
