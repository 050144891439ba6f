"""The entries of one queue, for its check and its rebuild, and the violations of a check."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import ParamSpec, TypeVar

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

    def chunks(self, family: Family) -> Iterator[list[tuple[bytes, bytes]]]:
        """Every entry in order, a thousand at a time."""
        entries = self.store.walk(family, self.prefix, prefix_end(self.prefix))
        while chunk := [(key[PREFIX_BYTES:], value) for key, value in islice(entries, _CHUNK)]:
            yield chunk

    def walk(self, family: Family) -> Iterator[tuple[bytes, bytes]]:
        for chunk in self.chunks(family):
            yield from chunk

    def count(self, family: Family) -> int:
        return sum(map(len, self.chunks(family)))

    def get(self, family: Family, key: bytes) -> bytes | None:
        return self.store.get(family, self.prefix + key)

    def get_many(self, family: Family, keys: Sequence[bytes]) -> list[bytes | None]:
        return self.store.get_many(family, [self.prefix + key for key in keys])

    def delete_all(self, batch: Batch, family: Family) -> None:
        batch.delete_range(family, self.prefix, prefix_end(self.prefix))


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
