"""Writes one part of a load as sorted files, with the entries that an add of its rows would write.

The id of an item is made of its partition and row, so blocks come in order of id, and so do the
ready runs of each priority: these are written as they come. Delayed runs and keys are collected and
sorted, some at a time, so that memory stays small. So does the buffer for rows that come in small
calls: they are written when they fill some blocks.
"""

from collections.abc import Callable, Sequence
from operator import itemgetter
from pathlib import Path

from queueber.db.bulk.joined_rows import join_rows
from queueber.db.bulk.staged_files import CLAIMS, SstWriter
from queueber.db.families import Family
from queueber.db.records.blocks import make_blocks
from queueber.db.records.keys import (
    DIGEST_BYTES,
    due_part,
    level_part,
    queue_prefix,
    text_digest,
    time_part,
)
from queueber.db.records.new_runs import new_runs
from queueber.db.records.remembered import encode_key_entry, groups_to_forget, ids_digest
from queueber.db.records.runs import Mark, Run, count_items, encode_run, mark_level
from queueber.ids import ItemId, ids_up_to, range_id
from queueber.limits import BLOCK_BYTES_MAX, BLOCK_ITEMS_MAX, PRIORITY_MAX, ROWS_MAX
from queueber.model import LoadInfo, Part, PartRef, Rows, StagedFile, total_size

_BUFFERED_BLOCKS = 16
"""Rows of small calls are collected until they fill so many blocks: only the last is not full."""

_SORTED_ENTRIES = 250_000
"""Entries that are sorted at once: about 60 MB."""


class PartWriter:
    def __init__(
        self,
        load: LoadInfo,
        ref: PartRef,
        directory: Path,
        on_file: Callable[[StagedFile], None] = lambda file: None,
        *,
        buffered_rows: int = _BUFFERED_BLOCKS * BLOCK_ITEMS_MAX,
        sorted_entries: int = _SORTED_ENTRIES,
    ) -> None:
        """Files are written into `directory`; `on_file` is called with each that is complete.

        Rows of small calls are written once there are `buffered_rows` of them.
        """
        self._load = load
        self._ref = ref
        self._directory = directory
        self._on_file = on_file
        self._buffered_rows = buffered_rows
        self._sorted_entries = sorted_entries
        self._prefix = queue_prefix(load.queue_number)
        self._started_at = time_part(load.started_at_ms)
        self._forget_at_ms = load.started_at_ms + load.dedup_window_ms
        self._writers: dict[tuple[str, int], SstWriter] = {}
        self._files: list[StagedFile] = []
        self._numbers = 0
        self._buffer: list[Rows] = []
        self._buffered_bytes = 0
        self._delayed: list[tuple[bytes, bytes]] = []
        self._keyed: list[tuple[bytes, bytes]] = []
        self.rows = self._written = self._contents_bytes = 0
        self._levels = [0] * (PRIORITY_MAX + 1)
        self._delayed_count = self._keys_count = 0
        self._delayed_first_ms = 0

    def add(self, rows: Rows) -> None:
        """Add the next rows. Until the next call or `finish`, the caller does not change them."""
        count = len(rows.contents)
        if not count:
            return
        if self.rows + count > ROWS_MAX:
            raise OverflowError(f"a partition has at most {ROWS_MAX} rows")
        self._buffer.append(rows)
        self._buffered_bytes += total_size(rows.contents)
        self.rows += count
        is_full = self._buffered_bytes >= _BUFFERED_BLOCKS * BLOCK_BYTES_MAX
        if is_full or self.rows - self._written >= self._buffered_rows:
            self._write_buffer()

    def _write_buffer(self) -> None:
        rows = join_rows(self._buffer)
        self._buffer, self._buffered_bytes = [], 0
        # A time of 0 means ready at once.
        started_at_ms = self._load.started_at_ms
        times_ms = [at_ms if at_ms > started_at_ms else 0 for at_ms in rows.visible_at_ms]
        items = self._writer(Family.ITEMS.family_name)
        ready: dict[Mark, list[Run]] = {}
        delayed: list[tuple[int, Run]] = []
        for block in make_blocks(rows):
            last = self._id(self._written + block.stop - 1)
            items.put(self._prefix + last, block.value)
            self._contents_bytes += block.size(0, block.stop - block.start)
            batch = self._load.batch_number
            for at_ms, run in new_runs(last, block, times_ms, rows.priorities, batch):
                if at_ms:
                    delayed.append((at_ms, run))
                else:
                    ready.setdefault(run.mark, []).append(run)
        for mark, runs in ready.items():
            self._make_ready(mark_level(mark), runs)
        if delayed:
            self._delay(delayed)
        if rows.keys and self._load.dedup_window_ms:
            self._note_keys(rows.keys)
        self._written = self.rows
        if items.size() >= self._load.file_bytes_max:
            self._finish_writers()

    def _id(self, row: int) -> ItemId:
        return range_id(self._load.id_head, self._ref.partition, row)

    # --- states of the items ----------------------------------------------------------------------

    def _make_ready(self, level: int, runs: Sequence[Run]) -> None:
        head = self._prefix + level_part(level) + self._started_at
        # One file for each level: a file that spans entries of others makes RocksDB flush.
        writer = self._writer(Family.VISIBILITY_INDEX.family_name, level)
        writer.put_many([head + run.last for run in runs], [encode_run(run) for run in runs])
        self._levels[level] += count_items(runs)

    def _delay(self, runs: Sequence[tuple[int, Run]]) -> None:
        """Each run has its time."""
        prefix = self._prefix
        self._delayed_count += count_items([run for _, run in runs])
        first_ms = min([at_ms for at_ms, _ in runs])
        self._delayed_first_ms = min(self._delayed_first_ms or first_ms, first_ms)
        places = self._writer(Family.PLACES.family_name)
        times = [time_part(at_ms) for at_ms, _ in runs]
        places.put_many([prefix + run.last for _, run in runs], times)
        self._delayed += [
            (prefix + time + run.last, encode_run(run))
            for time, (_, run) in zip(times, runs, strict=True)
        ]
        while len(self._delayed) >= self._sorted_entries:
            self._write_delayed()

    def _write_delayed(self) -> None:
        entries = sorted(self._delayed[: self._sorted_entries])
        del self._delayed[: self._sorted_entries]
        keys, values = zip(*entries, strict=True)
        self._write_file(Family.DELAYED.family_name, keys, values)

    # --- keys -------------------------------------------------------------------------------------

    def _note_keys(self, keys: Sequence[str]) -> None:
        """`keys` are those of the last rows."""
        ids = ids_up_to(self._id(self.rows - 1), len(keys))
        keyed = [(text_digest(key), item_id) for key, item_id in zip(keys, ids, strict=True) if key]
        self._keys_count += len(keyed)
        self._keyed += keyed
        while len(self._keyed) >= self._sorted_entries:
            self._write_keys()

    def _write_keys(self) -> None:
        claims = sorted(self._keyed[: self._sorted_entries])
        del self._keyed[: self._sorted_entries]
        prefix = self._prefix
        # A key belongs to the first item that has it; the claims list the duplicates.
        firsts = dict(reversed(claims))
        digests = sorted(firsts)
        entries = [encode_key_entry(firsts[each], self._forget_at_ms) for each in digests]
        claimed = [digest + item_id for digest, item_id in claims]
        self._write_file(CLAIMS, claimed, [b""] * len(claimed))
        self._write_file(Family.KEYS.family_name, [prefix + each for each in digests], entries)
        by_item = sorted(firsts.items(), key=itemgetter(1))
        groups = list(groups_to_forget(by_item))
        self._write_file(
            Family.FORGET.family_name,
            [prefix + due_part(self._forget_at_ms, reference) for reference, _, _ in groups],
            [kind + named for _, kind, named in groups],
        )

    # --- files ------------------------------------------------------------------------------------

    def _writer(self, family: str, level: int = 0) -> SstWriter:
        writer = self._writers.get((family, level))
        if writer is None:
            writer = self._writers[family, level] = self._new_writer(family)
        return writer

    def _new_writer(self, family: str) -> SstWriter:
        self._numbers += 1
        return SstWriter(self._directory / f"{self._numbers:06}-{family}.sst", family)

    def _write_file(self, family: str, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
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
        if self._buffer:
            self._write_buffer()
        self._finish_writers()
        if self._delayed:
            self._write_delayed()
        if self._keyed:
            self._write_keys()
        digest = 0
        if self.rows and self._load.batch_number:
            digest = ids_digest(self._id(self.rows - 1), self.rows)
        return Part(
            ref=self._ref,
            files=self._files,
            rows=self.rows,
            contents_bytes=self._contents_bytes,
            digest=digest.to_bytes(DIGEST_BYTES),
            levels=self._levels,
            delayed=self._delayed_count,
            delayed_first_ms=self._delayed_first_ms,
            keys=self._keys_count,
        )
