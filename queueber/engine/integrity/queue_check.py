"""What the checks of one queue share: walking its families in chunks, and saying what is wrong."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from queueber.db.families import Family
from queueber.db.records.counters import Counters
from queueber.db.records.keys import PREFIX_BYTES, prefix_end
from queueber.db.store.contract import Store

_CHUNK = 1000


@dataclass(frozen=True, slots=True)
class Violation:
    rule: str
    queue: str
    text: str

    def __str__(self) -> str:
        return f"{self.rule} {self.queue}: {self.text}"


class QueueCheck:
    def __init__(self, store: Store, name: str, prefix: bytes, counters: Counters) -> None:
        self._store = store
        self._name = name
        self._prefix = prefix
        self._counters = counters

    def _broken(self, rule: str, text: str) -> Violation:
        return Violation(rule, self._name, text)

    def _walk(self, family: Family) -> Iterator[list[tuple[bytes, bytes]]]:
        """The queue's entries without its prefix, in chunks."""
        entries = self._store.walk(family, self._prefix, prefix_end(self._prefix))
        while chunk := [(key[PREFIX_BYTES:], value) for key, value in islice(entries, _CHUNK)]:
            yield chunk

    def _entries(self, family: Family) -> Iterator[tuple[bytes, bytes]]:
        for chunk in self._walk(family):
            yield from chunk

    def _get(self, family: Family, part: bytes) -> bytes | None:
        return self._store.get(family, self._prefix + part)

    def _get_many(self, family: Family, parts: list[bytes]) -> list[bytes | None]:
        return self._store.get_many(family, [self._prefix + each for each in parts])
