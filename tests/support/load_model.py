"""Loads as plain dictionaries, for the reference model of a queue."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from queueber.model import LoadRef, PartRef

LOAD_KEEP_MS = 350


@dataclass(frozen=True)
class ModelRow:
    contents: bytes
    visible_at_ms: int
    priority: int
    key: str
    attributes: Mapping[str, str]


@dataclass
class ModelLoad:
    ref: LoadRef
    batch: str
    id_head: bytes
    started_at_ms: int
    seen_at_ms: int
    timeout_ms: int
    forget_at_ms: int
    parts: dict[PartRef, list[ModelRow]] = field(default_factory=dict)
    is_committing: bool = False

    @property
    def rows(self) -> int:
        return sum(map(len, self.parts.values()))

    def seen(self, now_ms: int) -> None:
        self.seen_at_ms = max(self.seen_at_ms, now_ms)

    def save_intent(self, now_ms: int) -> None:
        self.seen_at_ms = now_ms

    def item_id(self, partition: int, row: int) -> bytes:
        return self.id_head + partition.to_bytes(3) + row.to_bytes(4)


@dataclass(frozen=True)
class ModelLoaded:
    ref: LoadRef
    rows: int
    duplicates: int
    forget_at_ms: int


@dataclass(frozen=True)
class ModelCommit:
    """What a commit is going to do, decided when it begins."""

    ref: LoadRef
    now_ms: int
    added: Sequence[tuple[bytes, ModelRow]]
    duplicates: int


def decide(load: ModelLoad, refs: Sequence[PartRef], taken: set[str], now_ms: int) -> ModelCommit:
    """`taken` has the keys that are there."""
    added: list[tuple[bytes, ModelRow]] = []
    duplicates = 0
    taken = set(taken)
    for ref in sorted(refs, key=lambda each: each.partition):
        for number, row in enumerate(load.parts[ref]):
            if row.key and row.key in taken:
                duplicates += 1
                continue
            taken.add(row.key)
            added.append((load.item_id(ref.partition, number), row))
    return ModelCommit(load.ref, now_ms, added, duplicates)
