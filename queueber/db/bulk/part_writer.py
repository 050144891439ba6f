"""Writes one part of a load as sorted files, with the entries that an add of its rows would write.

The id of an item is made of its partition and row, so items come in order of id, and so do the
ready ones of each priority: these are written as they come. Delayed items and keys are collected
and sorted in runs, so that memory stays small.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from queueber.db.bulk.staged_files import CLAIMS, SstWriter
from queueber.db.families import Family
from queueber.db.records.items import describe
from queueber.db.records.keys import (
    DIGEST_BYTES,
    due_part,
    level_part,
    queue_prefix,
    text_digest,
    time_part,
)
from queueber.db.records.remembered import DIGEST_MODULUS, FORGET_KEY, encode_key_entry, ids_digest
from queueber.ids import PARTITION_BYTES, ROW_BYTES
from queueber.limits import PRIORITY_DEFAULT, PRIORITY_MAX, ROWS_MAX
from queueber.model import LoadInfo, Part, PartRef, Rows, StagedFile

_RUN_ENTRIES = 250_000
"""Entries of a run: about 60 MB."""


class PartWriter:
    def __init__(
        self,
        load: LoadInfo,
        ref: PartRef,
        directory: Path,
        on_file: Callable[[StagedFile], None] = lambda file: None,
        *,
        run_entries: int = _RUN_ENTRIES,
    ) -> None:
        """Files are written into `directory`; `on_file` is called with each that is complete."""
        self._load = load
        self._ref = ref
        self._directory = directory
        self._on_file = on_file
        self._run_entries = run_entries
        prefix = queue_prefix(load.queue_number)
        partition_head = load.id_head + ref.partition.to_bytes(PARTITION_BYTES)
        self._prefix = prefix
        self._id_start = partition_head
        self._ready_start = time_part(load.started_at_ms) + partition_head
        self._forget_at_ms = load.started_at_ms + load.dedup_window_ms
        self._writers: dict[tuple[str, int], SstWriter] = {}
        self._files: list[StagedFile] = []
        self._numbers = 0
        self._delayed: list[tuple[bytes, bytes]] = []
        self._keyed: list[tuple[bytes, bytes]] = []
        self.rows = self._contents_bytes = self._digest = 0
        self._levels = [0] * (PRIORITY_MAX + 1)
        self._delayed_count = self._keys_count = 0
        self._delayed_first_ms = 0

    def add(self, rows: Rows) -> None:
        count = len(rows.contents)
        if not count:
            return
        first = self.rows
        if first + count > ROWS_MAX:
            raise OverflowError(f"a partition has at most {ROWS_MAX} rows")
        numbers = [n.to_bytes(ROW_BYTES) for n in range(first, first + count)]
        self.rows += count
        sizes, marks, records = describe(rows, self._load.batch_number)
        self._contents_bytes += sum(sizes)

        id_start = self._id_start
        item_start = self._prefix + id_start
        items = self._writer(Family.ITEMS.family_name)
        items.put_many([item_start + n for n in numbers], records)
        if self._load.batch_number:
            self._digest += ids_digest([id_start + n for n in numbers])
        if rows.keys and self._load.dedup_window_ms:
            self._note_keys(rows.keys, numbers)
        self._place(rows, numbers, marks)
        if items.size() >= self._load.file_bytes_max:
            self._finish_writers()

    # --- states of the items ----------------------------------------------------------------------

    def _place(self, rows: Rows, numbers: list[bytes], marks: Sequence[bytes]) -> None:
        started_at_ms = self._load.started_at_ms
        if not rows.visible_at_ms or max(rows.visible_at_ms) <= started_at_ms:
            self._make_ready(rows.priorities, numbers, marks)
            return
        later = [n for n, at_ms in enumerate(rows.visible_at_ms) if at_ms > started_at_ms]
        self._delay([(rows.visible_at_ms[n], numbers[n], marks[n]) for n in later])
        ready = [n for n, at_ms in enumerate(rows.visible_at_ms) if at_ms <= started_at_ms]
        if ready:
            self._make_ready(
                [rows.priorities[n] for n in ready] if rows.priorities else (),
                [numbers[n] for n in ready],
                [marks[n] for n in ready],
            )

    def _make_ready(
        self, priorities: Sequence[int], numbers: Sequence[bytes], marks: Sequence[bytes]
    ) -> None:
        for priority in set(priorities) if priorities else (PRIORITY_DEFAULT,):
            level = PRIORITY_MAX - priority
            if priorities:
                places = [n for n, each in enumerate(priorities) if each == priority]
                chosen, of_level = [numbers[n] for n in places], [marks[n] for n in places]
            else:
                chosen, of_level = list(numbers), list(marks)
            start = self._prefix + level_part(level) + self._ready_start
            # One file for each level: a file that spans entries of others makes RocksDB flush.
            writer = self._writer(Family.VISIBILITY_INDEX.family_name, level)
            writer.put_many([start + n for n in chosen], of_level)
            self._levels[level] += len(chosen)

    def _delay(self, entries: list[tuple[int, bytes, bytes]]) -> None:
        self._delayed_count += len(entries)
        first_ms = min(at_ms for at_ms, _, _ in entries)
        self._delayed_first_ms = min(self._delayed_first_ms or first_ms, first_ms)
        id_start = self._id_start
        places = self._writer(Family.PLACES.family_name)
        places.put_many(
            [self._prefix + id_start + n for _, n, _ in entries],
            [time_part(at_ms) for at_ms, _, _ in entries],
        )
        self._delayed += [(due_part(at_ms, id_start + n), mark) for at_ms, n, mark in entries]
        if len(self._delayed) >= self._run_entries:
            self._write_delayed()

    def _write_delayed(self) -> None:
        entries, self._delayed = sorted(self._delayed), []
        keys = [self._prefix + due for due, _ in entries]
        self._write_run(Family.DELAYED.family_name, keys, [mark for _, mark in entries])

    # --- keys -------------------------------------------------------------------------------------

    def _note_keys(self, keys: Sequence[str], numbers: list[bytes]) -> None:
        id_start = self._id_start
        keyed = [
            (text_digest(key), id_start + n) for key, n in zip(keys, numbers, strict=True) if key
        ]
        self._keys_count += len(keyed)
        self._keyed += keyed
        if len(self._keyed) >= self._run_entries:
            self._write_keys()

    def _write_keys(self) -> None:
        claims, self._keyed = sorted(self._keyed), []
        prefix = self._prefix
        # A key belongs to the first item that has it; the claims list the duplicates.
        firsts = dict(reversed(claims))
        digests = sorted(firsts)
        forgets = [prefix + due_part(self._forget_at_ms, digest) for digest in digests]
        entries = [encode_key_entry(firsts[each], self._forget_at_ms) for each in digests]
        claimed = [digest + item_id for digest, item_id in claims]
        self._write_run(CLAIMS, claimed, [b""] * len(claimed))
        self._write_run(Family.KEYS.family_name, [prefix + each for each in digests], entries)
        self._write_run(Family.FORGET.family_name, forgets, [FORGET_KEY] * len(forgets))

    # --- files ------------------------------------------------------------------------------------

    def _writer(self, family: str, level: int = 0) -> SstWriter:
        writer = self._writers.get((family, level))
        if writer is None:
            writer = self._writers[family, level] = self._new_writer(family)
        return writer

    def _new_writer(self, family: str) -> SstWriter:
        self._numbers += 1
        return SstWriter(self._directory / f"{self._numbers:06}-{family}.sst", family)

    def _write_run(self, family: str, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        writer = self._new_writer(family)
        writer.put_many(keys, values)
        self._finish(writer)

    def _finish(self, writer: SstWriter) -> None:
        file = writer.finish()
        self._files.append(file)
        self._on_file(file)

    def _finish_writers(self) -> None:
        writers, self._writers = self._writers, {}
        for writer in writers.values():
            self._finish(writer)

    def finish(self) -> Part:
        self._finish_writers()
        if self._delayed:
            self._write_delayed()
        if self._keyed:
            self._write_keys()
        return Part(
            ref=self._ref,
            files=self._files,
            rows=self.rows,
            contents_bytes=self._contents_bytes,
            digest=(self._digest % DIGEST_MODULUS).to_bytes(DIGEST_BYTES),
            levels=self._levels,
            delayed=self._delayed_count,
            delayed_first_ms=self._delayed_first_ms,
            keys=self._keys_count,
        )
