"""The check of a queue's loads: their parts and rows, and that none is half committed."""

from collections.abc import Generator, Iterator

from queueber.db.families import Family
from queueber.db.records.keys import due_part
from queueber.db.records.loads import (
    LOAD_KEY_BYTES,
    decode_load,
    decode_loaded,
    decode_part,
    is_load_key,
    load_digest,
    load_key,
    loaded_digest,
    loaded_key,
    loads_end,
    part_key,
)
from queueber.db.records.remembered import FORGET_LOAD, FORGET_LOADED
from queueber.engine.integrity.queue_entries import CheckedQueue, Violation
from queueber.ids import range_end

HALF_COMMITTED = "is half committed; start the server once to finish it"


class LoadsCheck:
    def __init__(self, queue: CheckedQueue) -> None:
        self._broken = queue.broken
        self._entries = queue.entries
        self._counters = queue.counters
        self.forget_entries: dict[bytes, bytes] = {}
        """The entries that loads must have in `forget`."""
        self.by_batch: dict[int, int] = {}
        """How many loads under way add to each batch."""

    def run(self) -> Iterator[Violation]:
        digest, rows, staged = b"", 0, 0
        for key, value in self._entries.walk(Family.LOADS):
            if key >= loads_end():
                yield from self._check_loaded(key, value)
            elif is_load_key(key):
                yield from self._check_rows(digest, rows, staged)
                digest, staged = key[1:], 0
                rows = yield from self._check_load(key, value)
            else:
                part = decode_part(value)
                staged += part.rows
                if key[:LOAD_KEY_BYTES] != load_key(digest) or key != part_key(digest, part.ref):
                    yield self._broken("I13", f"part {key.hex()} belongs to no load")
        yield from self._check_rows(digest, rows, staged)

    def _check_load(self, key: bytes, value: bytes) -> Generator[Violation, None, int]:
        load = decode_load(value)
        digest = load_digest(load.ref.name)
        if key != load_key(digest):
            yield self._broken("I13", f"load {load.ref.name!r} is not stored under its name")
        if load.is_committing:
            yield self._broken("I13", f"load {load.ref.name!r} {HALF_COMMITTED}")
        if range_end(load.id_head) > self._counters.last_id:
            yield self._broken("I8", f"the ids of load {load.ref.name!r} go beyond last_id")
        if load.batch:
            self.by_batch[load.batch] = self.by_batch.get(load.batch, 0) + 1
        self.forget_entries[due_part(load.forget_at_ms, digest)] = FORGET_LOAD
        return load.rows

    def _check_loaded(self, key: bytes, value: bytes) -> Iterator[Violation]:
        loaded = decode_loaded(value)
        digest = loaded_digest(loaded.ref.name)
        if key != loaded_key(digest):
            yield self._broken("I13", f"load {loaded.ref.name!r} is not stored under its name")
        self.forget_entries[due_part(loaded.forget_at_ms, digest)] = FORGET_LOADED

    def _check_rows(self, digest: bytes, rows: int, staged: int) -> Iterator[Violation]:
        if rows != staged:
            yield self._broken(
                "I13", f"load {digest.hex()} has {rows} rows, but its parts have {staged}"
            )
