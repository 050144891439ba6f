"""The check of the runs of a part: each row is in one run of one index, as an add would enter it.

It reads the files of the indexes, which are small beside those of contents: most blocks are one
run. It does not read the contents. What it keeps in memory does not depend on how many runs there
are: instead of comparing sets it compares sums of hashes.
"""

from collections.abc import Callable, Iterator

from queueber.db.families import Family
from queueber.db.records import keys
from queueber.db.records.loads import LoadRecord
from queueber.db.records.runs import RUN_BYTES, Run, decode_run, mark_has_details, new_mark
from queueber.errors import InvalidArgument
from queueber.ids import PARTITION_BYTES, ROW_BYTES
from queueber.limits import BLOCK_ITEMS_MAX, ID_BYTES, PRIORITY_MAX
from queueber.model import Part

Entries = Callable[[Family], Iterator[tuple[bytes, bytes]]]
"""Reads the entries of the part's files of a family, in order of key."""


def check_runs(load: LoadRecord, prefix: bytes, part: Part, entries: Entries) -> None:
    """Raise `InvalidArgument` if a run is wrong; `check_part` has passed the part.

    Reads the files of the indexes. May run in another thread.
    """
    if part.rows:
        _RunCheck(load, prefix, part).run(entries)


class _RunCheck:
    def __init__(self, load: LoadRecord, prefix: bytes, part: Part) -> None:
        self._load = load
        self._prefix = prefix
        self._part = part
        self._ids = load.id_head + part.ref.partition.to_bytes(PARTITION_BYTES)
        # The marks that new items of the load have, and their levels.
        self._levels = {
            new_mark(load.batch, priority, has_details=has_details): PRIORITY_MAX - priority
            for priority in range(PRIORITY_MAX + 1)
            for has_details in (False, True)
        }
        self._size = self._blocks = 0
        self._bounds = 0
        """Hashes of the rows at which runs begin, less those at which they end. If each row is in
        one run, every run ends where another begins, and only the bounds of the part are left."""
        self._agreement = 0
        """0 if all runs of a block say the same of it."""

    def run(self, entries: Entries) -> None:
        part = self._part
        self._check_ready(entries(Family.VISIBILITY_INDEX))
        if part.delayed:
            self._check_delayed(entries(Family.DELAYED), entries(Family.PLACES))
        if self._bounds != hash((0,)) - hash((part.rows,)):
            raise InvalidArgument(
                f"files: the runs have {part.rows} items, but some rows are in two of them, and "
                "others in none"
            )
        if self._agreement:
            raise InvalidArgument("files: runs of one block differ in what they say of it")
        found = sum(file.entries for file in part.files if file.family == Family.ITEMS.family_name)
        if found != self._blocks:
            raise InvalidArgument(
                f"files: those of items have {found} blocks, but the runs are in {self._blocks}"
            )
        if self._size != part.contents_bytes:
            raise InvalidArgument(
                f"contentsBytes: {part.contents_bytes}, but the runs have {self._size} bytes"
            )

    def _check_ready(self, entries: Iterator[tuple[bytes, bytes]]) -> None:
        family = Family.VISIBILITY_INDEX.family_name
        since = keys.time_part(self._load.started_at_ms) + self._ids
        heads = [self._prefix + keys.level_part(n) + since for n in range(PRIORITY_MAX + 1)]
        levels = {head: level for level, head in enumerate(heads)}
        counts = [0] * len(heads)
        for key, value in entries:
            level = levels.get(key[:-ROW_BYTES])
            if level is None:
                raise _wrong(family, key, "its key is outside of the range of the part")
            run = self._check_run(family, key, value)
            if self._levels[run.mark] != level:
                raise _wrong(family, key, "its level is not the one of its mark")
            counts[level] += run.count
        for level, (found, count) in enumerate(zip(counts, self._part.levels, strict=True)):
            if found != count:
                what = f"{family} of priority {PRIORITY_MAX - level}"
                raise InvalidArgument(f"files: those of {what} have {found} items, not {count}")

    def _check_delayed(
        self, entries: Iterator[tuple[bytes, bytes]], places: Iterator[tuple[bytes, bytes]]
    ) -> None:
        family, part = Family.DELAYED.family_name, self._part
        time_at, id_at = keys.PREFIX_BYTES, keys.PREFIX_BYTES + keys.TIME_BYTES
        count = difference = first_ms = 0
        for key, value in entries:
            if key[:time_at] != self._prefix or key[id_at:-ROW_BYTES] != self._ids:
                raise _wrong(family, key, "its key is outside of the range of the part")
            first_ms = first_ms or int.from_bytes(key[time_at:id_at])
            count += self._check_run(family, key, value).count
            difference += hash(key[time_at:])
        if (count, first_ms) != (part.delayed, part.delayed_first_ms):
            raise InvalidArgument(
                f"files: those of {family} have {count} items from {first_ms}, not {part.delayed} "
                f"from {part.delayed_first_ms}"
            )
        for key, value in places:
            difference -= hash(value + key[keys.PREFIX_BYTES :])
        if difference:
            raise InvalidArgument("files: those of places do not have the times of delayed runs")

    def _check_run(self, family: str, key: bytes, value: bytes) -> Run:
        if len(value) != RUN_BYTES:
            raise _wrong(family, key, f"it has {len(value)} bytes, not {RUN_BYTES}")
        run = decode_run(key[-ID_BYTES:], value)
        stop = int.from_bytes(key[-ROW_BYTES:]) + 1
        block_start = stop - run.count - run.at
        block_stop = block_start + run.span
        if not 0 < run.count <= run.span - run.at <= run.span <= BLOCK_ITEMS_MAX:
            raise _wrong(
                family,
                key,
                f"{run.count} items from position {run.at} do not fit into a block of {run.span}",
            )
        if block_start < 0 or block_stop > self._part.rows:
            raise _wrong(family, key, f"its block is outside of the {self._part.rows} rows")
        if run.mark not in self._levels:
            raise _wrong(family, key, f"no new item of the load has the mark {run.mark.hex()}")
        self._size += run.size
        self._bounds += hash((stop - run.count,)) - hash((stop,))
        block = hash((block_start, run.span, mark_has_details(run.mark)))
        self._agreement += block * run.count
        if not run.at:
            self._blocks += 1
            self._agreement -= block * run.span
        return run


def _wrong(family: str, key: bytes, why: str) -> InvalidArgument:
    return InvalidArgument(f"files: {family} has a wrong run under {key.hex()}: {why}")
