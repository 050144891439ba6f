"""Names and numbers of batches: items have the number of theirs, callers know the name."""

from queueber.db.families import Family
from queueber.db.records import remembered as codec
from queueber.db.records.keys import text_digest
from queueber.db.store.contract import Reads

_NAMES_KEPT = 1000


class BatchNames:
    """Names and numbers of batches, read from a store or a snapshot."""

    __slots__ = ("_names", "_prefix", "_reads")

    def __init__(self, reads: Reads, prefix: bytes) -> None:
        self._reads = reads
        self._prefix = prefix
        self._names: dict[int, str] = {}
        """By number: a cache of recently used batches."""

    def name(self, number: int) -> str:
        """The name of a batch; "" for number 0 (no batch), and for a batch that is forgotten."""
        # Polls call this for every item: most have no batch, or one that is cached.
        if number == 0:
            return ""
        name = self._names.get(number)
        if name is None:
            stored = self._reads.get(Family.BATCHES, self._prefix + codec.batch_number_part(number))
            if stored is None:
                return ""
            name = codec.decode_batch(stored).name
            if len(self._names) >= _NAMES_KEPT:
                self._names.clear()
            self._names[number] = name
        return name

    def number(self, name: str) -> int | None:
        stored = self._reads.get(Family.BATCH_NAMES, self._prefix + text_digest(name))
        return None if stored is None else int.from_bytes(stored)

    def forget(self, number: int) -> None:
        self._names.pop(number, None)
