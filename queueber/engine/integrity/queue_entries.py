"""The entries of one queue, for its check and its rebuild, and the violations of a check."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Generic, ParamSpec, TypeVar

from queueber.db.families import Family
from queueber.db.records.keys import PREFIX_BYTES, prefix_end
from queueber.db.records.queues import Counters
from queueber.db.store.contract import Batch, Store

P = ParamSpec("P")
T = TypeVar("T")

_CHUNK = 1000


class QueueEntries:
    """Reads below the number of a queue: keys are given and returned without it."""

    def __init__(self, store: Store, prefix: bytes) -> None:
        self.store = store
        self.prefix = prefix

    def walk(self, family: Family, start: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """Every entry from `start` on, in order; none is read before it is asked for."""
        for key, value in self.store.walk(family, self.prefix + start, prefix_end(self.prefix)):
            yield key[PREFIX_BYTES:], value

    def chunks(self, family: Family) -> Iterator[list[tuple[bytes, bytes]]]:
        """Every entry in order, a thousand at a time."""
        entries = self.walk(family)
        while chunk := list(islice(entries, _CHUNK)):
            yield chunk

    def scan(self, family: Family, start: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        """Up to `limit` entries, the first of which is not before `start`."""
        stop = prefix_end(self.prefix)
        found = self.store.scan(family, self.prefix + start, stop, limit)
        return [(key[PREFIX_BYTES:], value) for key, value in found]

    def count(self, family: Family) -> int:
        return sum(1 for _ in self.walk(family))

    def get(self, family: Family, key: bytes) -> bytes | None:
        return self.store.get(family, self.prefix + key)

    def get_many(self, family: Family, keys: Sequence[bytes]) -> list[bytes | None]:
        return self.store.get_many(family, [self.prefix + key for key in keys])

    def delete_all(self, batch: Batch, family: Family) -> None:
        batch.delete_range(family, self.prefix, prefix_end(self.prefix))


class QueueWrites:
    """Writes below the number of a queue, some hundreds at a time."""

    def __init__(self, entries: QueueEntries) -> None:
        self._store = entries.store
        self._prefix = entries.prefix
        self._batch = entries.store.batch()

    def put(self, family: Family, key: bytes, value: bytes) -> None:
        self._batch.put(family, self._prefix + key, value)
        self._flush(_CHUNK)

    def delete(self, family: Family, key: bytes) -> None:
        self._batch.delete(family, self._prefix + key)
        self._flush(_CHUNK)

    def delete_all(self, family: Family) -> None:
        self._batch.delete_range(family, self._prefix, prefix_end(self._prefix))

    def flush(self) -> None:
        self._flush(1)

    def _flush(self, steps: int) -> None:
        if len(self._batch) >= steps:
            self._store.write(self._batch)
            self._batch = self._store.batch()


class InStep(Generic[T]):
    """Takes entries in the order of their keys, in step with another walk in that order."""

    def __init__(self, entries: Iterable[tuple[bytes, T]]) -> None:
        self._entries = iter(entries)
        self._next = next(self._entries, None)

    def up_to(self, key: bytes) -> list[tuple[bytes, T]]:
        """The entries that were not taken yet, up to and including a key."""
        taken = []
        while self._next is not None and self._next[0] <= key:
            taken.append(self._next)
            self._next = next(self._entries, None)
        return taken

    def rest(self) -> Iterator[tuple[bytes, T]]:
        if self._next is not None:
            yield self._next
            yield from self._entries


@dataclass(frozen=True, slots=True)
class Violation:
    rule: str
    queue: str
    text: str

    def __str__(self) -> str:
        return f"{self.rule} {self.queue}: {self.text}"


@dataclass(frozen=True, slots=True)
class CheckedQueue:
    """A queue that is being checked."""

    name: str
    entries: QueueEntries
    counters: Counters
    """As they are stored."""

    def broken(self, rule: str, text: str) -> Violation:
        return Violation(rule, self.name, text)


def readable(decode: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
    """What a record says; None if it is damaged."""
    try:
        return decode(*args, **kwargs)
    except Exception:  # noqa: BLE001  damaged bytes raise all kinds
        return None
