"""What a gateway knows of all subscriptions, to see at once which of them an append is for.

It may be seconds old. That delays a wake, and does no other harm.
"""

from collections.abc import Collection

from queueber.gateway.streams.paths import is_stream
from queueber.gateway.streams.subscriptions import patterns
from queueber.gateway.streams.subscriptions.records.record import LINKS_MAX, Record

_PATHS_MAX = 10_000
"""Paths of which it is remembered which subscriptions they are for."""


class Lookout:
    def __init__(self) -> None:
        self.records: dict[str, Record] = {}
        """By id."""
        self._found: dict[str, tuple[str, ...]] = {}
        self._unlinked: dict[str, set[str]] = {}

    def see(self, record: Record) -> None:
        before = self.records.get(record.id)
        self.records[record.id] = record
        if before is None or before.links.keys() != record.links.keys():
            self._found.clear()

    def forget(self, id: str) -> None:
        self._unlinked.pop(id, None)
        if self.records.pop(id, None) is not None:
            self._found.clear()

    def keep(self, ids: Collection[str]) -> None:
        """Forget all others."""
        for id in set(self.records) - set(ids):
            self.forget(id)

    def prefixes(self) -> set[str]:
        """What the paths of all patterns begin with."""
        known = self.records.values()
        return {patterns.fixed_prefix(each.pattern) for each in known if each.pattern is not None}

    def subscribers_of(self, path: str) -> tuple[str, ...]:
        """The ids of the subscriptions that a stream belongs to, or should."""
        found = self._found.get(path)
        if found is None:
            if len(self._found) >= _PATHS_MAX:
                self._found.clear()
            found = self._found[path] = tuple(
                id for id, record in self.records.items() if self._is_for(record, path)
            )
        return found

    def _is_for(self, record: Record, path: str) -> bool:
        if path in record.links:
            return True
        if record.pattern is None or not is_stream(path):
            return False
        if not patterns.matches(record.pattern, path):
            return False
        unlinked = self._unlinked.setdefault(record.id, set())
        if len(unlinked) < LINKS_MAX:
            unlinked.add(path)
        return True

    def unlinked(self, record: Record) -> list[str]:
        """Streams that the pattern matches and that are not linked yet."""
        found = self._unlinked.get(record.id, set())
        found -= record.links.keys()
        return list(found)

    def is_gone(self, id: str, path: str) -> None:
        """A stream that was to be linked does not exist."""
        self._unlinked.get(id, set()).discard(path)
        self._found.pop(path, None)
