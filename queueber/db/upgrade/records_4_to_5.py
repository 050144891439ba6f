"""Format 4 to 5: batches get the new digests, and loads that are not committed are dropped.

The digest of ids is computed in another way. For items that still exist the new one replaces the
old one: live items are part of what was added, dead letters also of what is dead. What is gone has
the same digest on both sides, whichever that is, so a receipt adds up as before.

The staged files of a load have the layout of format 4, so the load has to be run again.
"""

from collections import Counter
from dataclasses import dataclass

from queueber.db.records import loads
from queueber.db.records.keys import due_part, text_digest
from queueber.db.records.queues import Counters
from queueber.db.records.remembered import (
    BATCH_NUMBER_BYTES,
    DIGEST_MODULUS,
    FORGET_BATCH,
    BatchRecord,
    decode_batch,
    encode_batch,
    ids_digest,
)
from queueber.db.records.runs import Run, mark_batch
from queueber.db.upgrade import format_4
from queueber.db.upgrade.stores import NewStore, OldStore, Work
from queueber.errors import StorageCorrupt
from queueber.limits import BATCH_KEEP_MS, ID_BYTES


class HalfCommitted(StorageCorrupt):
    """A load is half committed; the version that wrote the store has to finish that."""


def refuse_half_committed(old: OldStore, queues: list[tuple[bytes, str]]) -> None:
    for prefix, queue in queues:
        for key, value in old.walk("loads", prefix):
            if loads.is_load_key(key[len(prefix) :]):
                load = loads.decode_load(value)
                if load.is_committing:
                    raise HalfCommitted(
                        f"load {load.ref.name!r} of queue {queue!r} is half committed; nothing was "
                        "changed: start and stop the version of Queueber that wrote the store "
                        f"(format {old.number}) once, which finishes it, then upgrade"
                    )


@dataclass(slots=True)
class _Sums:
    """Digests of the ids of a batch: of live items and dead letters, old and new."""

    live_old: int = 0
    live_new: int = 0
    dead_old: int = 0
    dead_new: int = 0


class Digests:
    """The digests of every batch of a queue, by its number."""

    def __init__(self) -> None:
        self._batches: dict[int, _Sums] = {}

    def add(self, run: Run, *, is_dead: bool) -> None:
        number = mark_batch(run.mark)
        if not number:
            return
        sums = self._batches.setdefault(number, _Sums())
        before, after = format_4.ids_digest(run.ids), ids_digest(run.last, run.count)
        if is_dead:
            sums.dead_old += before
            sums.dead_new += after
        else:
            sums.live_old += before
            sums.live_new += after

    def replace(self, number: int, record: BatchRecord) -> None:
        """Put the new digests into the record; raises `ValueError` if it does not add up."""
        sums = self._batches.pop(number, None) or _Sums()
        ended = record.done_digest + record.dead_digest
        if (record.added_digest - ended - sums.live_old) % format_4.DIGEST_MODULUS:
            raise ValueError(f"batch {record.name!r} does not add up")
        gone_dead = (record.dead_digest - sums.dead_old) % format_4.DIGEST_MODULUS
        record.done_digest %= DIGEST_MODULUS
        record.dead_digest = (gone_dead + sums.dead_new) % DIGEST_MODULUS
        ended = record.done_digest + record.dead_digest
        record.added_digest = (ended + sums.live_new) % DIGEST_MODULUS

    def check_all_replaced(self) -> None:
        if self._batches:
            raise ValueError(f"items name the batches {sorted(self._batches)}, which do not exist")


class RecordsUpgrade:
    """Writes what one queue remembers of batches and loads, and when it forgets them."""

    def __init__(
        self, old: OldStore, new: NewStore, prefix: bytes, name: str, counters: Counters
    ) -> None:
        """`counters` are changed as the records are."""
        self._old = old
        self._new = new
        self._prefix = prefix
        self._name = name
        self._counters = counters
        self._not_forgotten: set[bytes] = set()
        """Entries of `forget` for loads that are dropped."""
        self._released: Counter[int] = Counter()
        """How many loads that are dropped held each batch."""
        self._names_dropped: set[bytes] = set()
        """Keys in `batch_names` of batches that are dropped."""

    def convert(self, digests: Digests, work: Work) -> None:
        for key, value in self._old.walk("loads", self._prefix):
            self._convert_load(key, value, work)
        for key, value in self._old.walk("batches", self._prefix):
            self._convert_batch(key, decode_batch(value), digests, work.now_ms)
        digests.check_all_replaced()
        for family, left_out in (
            ("batch_names", self._names_dropped),
            ("forget", self._not_forgotten),
        ):
            for key, value in self._old.walk(family, self._prefix):
                if key not in left_out:
                    self._new.put(family, key, value)

    def _convert_load(self, key: bytes, value: bytes, work: Work) -> None:
        tail = key[len(self._prefix) :]
        if tail >= loads.LOADS_END:
            self._new.put("loads", key, value)
        elif loads.is_load_key(tail):
            load = loads.decode_load(value)
            digest = loads.load_digest(load.ref.name)
            self._not_forgotten.add(self._prefix + due_part(load.forget_at_ms, digest))
            self._counters.forgets -= 1
            if load.batch:
                self._released[load.batch] += 1
            work.notes.append(
                f"load {load.ref.name!r} of queue {self._name!r} was not committed, and is "
                "dropped: run it again"
            )

    def _convert_batch(
        self, key: bytes, record: BatchRecord, digests: Digests, now_ms: int
    ) -> None:
        number = int.from_bytes(key[len(self._prefix) :])
        digests.replace(number, record)
        if released := self._released[number]:
            record.loads -= released
            # As an aborted load does: a batch that only the load held goes with it.
            if record.added == 0 and not record.loads and not record.forget_at_ms:
                self._names_dropped.add(self._prefix + text_digest(record.name))
                self._counters.batches -= 1
                return
            record.changed_at_ms = now_ms
            if record.live == 0 and not record.loads and not record.forget_at_ms:
                self._forget_batch(number, record, now_ms + BATCH_KEEP_MS)
        self._new.put("batches", key, encode_batch(record))

    def _forget_batch(self, number: int, record: BatchRecord, at_ms: int) -> None:
        record.forget_at_ms = at_ms
        reference = number.to_bytes(BATCH_NUMBER_BYTES).ljust(ID_BYTES, b"\0")
        self._new.put("forget", self._prefix + due_part(at_ms, reference), FORGET_BATCH)
        self._counters.forgets += 1
        self._counters.forget_due_ms = min(self._counters.forget_due_ms, at_ms)
