"""The check of a part of a load: its files may have only entries of this part.

It compares the description of each file, first and last key and number of entries, with the ranges
of keys that belong to this part alone. `Stage.check` compares the descriptions with the files, and
`check_runs` reads the entries of those that are small.
"""

import re
from collections.abc import Iterator, Sequence

from queueber.db.bulk.staged_files import CLAIMS
from queueber.db.families import Family
from queueber.db.records import keys
from queueber.db.records.loads import LoadRecord
from queueber.db.records.remembered import ids_digest
from queueber.errors import InvalidArgument
from queueber.ids import PARTITION_BYTES, range_id
from queueber.limits import (
    BLOCK_ITEMS_MAX,
    FORGOTTEN_TOGETHER_MAX,
    ID_BYTES,
    LOAD_FILE_BYTES_MAX,
    LOAD_FILES_MAX,
    PARTITIONS_MAX,
    PRIORITY_MAX,
    ROWS_MAX,
)
from queueber.model import Part, StagedFile

FILE_NAME = re.compile(r"[a-z0-9_-]{1,64}\.sst", re.ASCII)


def check_part(load: LoadRecord, prefix: bytes, part: Part) -> None:
    """Raise `InvalidArgument` if something is wrong with the part; `prefix` is the queue's."""
    _PartCheck(load, prefix, part).run()


class _PartCheck:
    def __init__(self, load: LoadRecord, prefix: bytes, part: Part) -> None:
        self._load = load
        self._prefix = prefix
        self._part = part
        self._ids = load.id_head + part.ref.partition.to_bytes(PARTITION_BYTES)

    def run(self) -> None:
        part = self._part
        if not 0 <= part.rows <= ROWS_MAX:
            raise InvalidArgument(f"rows: {part.rows} is out of range; the limit is {ROWS_MAX}")
        if len(part.levels) != PRIORITY_MAX + 1:
            raise InvalidArgument(
                f"levels: {len(part.levels)}; give {PRIORITY_MAX + 1}, one for each priority"
            )
        if part.rows != sum(part.levels) + part.delayed:
            raise InvalidArgument(
                f"rows: {part.rows}, but {sum(part.levels)} are ready and {part.delayed} delayed"
            )
        if len(part.files) > LOAD_FILES_MAX:
            raise InvalidArgument(
                f"files: {len(part.files)} are too many; the limit is {LOAD_FILES_MAX}"
            )
        for file in part.files:
            _check_file(file)
        self._check_items()
        self._check_ready()
        self._check_delayed()
        self._check_keys()
        self._check_digest()

    def _of(self, family: str) -> list[StagedFile]:
        return [file for file in self._part.files if file.family == family]

    def _last_id(self) -> bytes:
        return range_id(self._load.id_head, self._part.ref.partition, max(self._part.rows - 1, 0))

    def _check_items(self) -> None:
        files, rows = self._of(Family.ITEMS.family_name), self._part.rows
        self._check_ids(files)
        _check_runs(Family.ITEMS.family_name, files, rows)
        if rows and files[-1].last_key != self._prefix + self._last_id():
            raise InvalidArgument(f"files: those of items do not end with row {rows - 1}")

    def _check_ids(self, files: Sequence[StagedFile]) -> None:
        """Files whose keys are ids: in order, and within the part's range."""
        _check_ranges(files, self._prefix + self._ids + bytes(4), self._prefix + self._last_id())

    def _check_ready(self) -> None:
        family = Family.VISIBILITY_INDEX.family_name
        files = self._of(family)
        level_at, due_at = keys.PREFIX_BYTES, keys.PREFIX_BYTES + keys.LEVEL_BYTES
        known = 0
        for level, count in enumerate(self._part.levels):
            part = keys.level_part(level)
            of_level = [file for file in files if file.first_key[level_at:due_at] == part]
            start = self._prefix + part + keys.time_part(self._load.started_at_ms) + self._ids
            _check_ranges(of_level, start + bytes(4), start + b"\xff" * 4)
            _check_runs(f"{family} of priority {PRIORITY_MAX - level}", of_level, count)
            known += len(of_level)
        if known != len(files):
            raise InvalidArgument(f"files: {len(files) - known} of {family} are of no priority")

    def _check_delayed(self) -> None:
        part = self._part
        files = self._of(Family.DELAYED.family_name)
        first_ms = part.delayed_first_ms
        if bool(part.delayed) != bool(first_ms) or (
            part.delayed and first_ms <= self._load.started_at_ms
        ):
            raise InvalidArgument(
                f"delayedFirstMs: {first_ms} for {part.delayed} delayed items; the load began at "
                f"{self._load.started_at_ms}"
            )
        low = self._prefix + keys.time_part(first_ms)
        for file, key in _ends(files, keys.PREFIX_BYTES + keys.DUE_BYTES):
            is_ours = key[keys.PREFIX_BYTES + keys.TIME_BYTES :].startswith(self._ids)
            if not key.startswith(self._prefix) or key < low or not is_ours:
                raise _outside(file, key)
        _check_runs(Family.DELAYED.family_name, files, part.delayed)
        places = self._of(Family.PLACES.family_name)
        self._check_ids(places)
        _check_count(Family.PLACES.family_name, places, sum(file.entries for file in files))

    def _check_keys(self) -> None:
        load, part = self._load, self._part
        if part.keys > part.rows or (part.keys and not load.dedup_window_ms):
            raise InvalidArgument(
                f"keys: {part.keys} of {part.rows} rows; the window of the load is "
                f"{load.dedup_window_ms} ms"
            )
        claims = self._of(CLAIMS)
        for file, key in _ends(claims, keys.DIGEST_BYTES + ID_BYTES):
            if not key[keys.DIGEST_BYTES :].startswith(self._ids):
                raise _outside(file, key)
        _check_count(CLAIMS, claims, part.keys)
        owners, forgets = self._of(Family.KEYS.family_name), self._of(Family.FORGET.family_name)
        forget_at = keys.time_part(load.started_at_ms + load.dedup_window_ms)
        start = self._prefix + forget_at + self._ids
        for files, head, size in (
            (owners, self._prefix, keys.PREFIX_BYTES + keys.DIGEST_BYTES),
            (forgets, start, keys.PREFIX_BYTES + keys.DUE_BYTES),
        ):
            for file, key in _ends(files, size):
                if not key.startswith(head):
                    raise _outside(file, key)
        if len(owners) != len(claims):
            raise InvalidArgument(f"files: {len(owners)} of keys for {len(claims)} of claims")
        groups = sum(-(-file.entries // FORGOTTEN_TOGETHER_MAX) for file in owners)
        _check_count(Family.FORGET.family_name, forgets, groups)

    def _check_digest(self) -> None:
        part = self._part
        if len(part.digest) != keys.DIGEST_BYTES:
            raise InvalidArgument(
                f"digest: {len(part.digest)} bytes; it must have {keys.DIGEST_BYTES}"
            )
        digest = ids_digest(self._last_id(), part.rows) if self._load.batch else 0
        if int.from_bytes(part.digest) != digest:
            raise InvalidArgument(f"digest: {part.digest.hex()} is not that of {part.rows} rows")


_KNOWN = {CLAIMS, "delayed", "forget", "items", "keys", "places", "visibility_index"}


def _check_file(file: StagedFile) -> None:
    if file.family not in _KNOWN:
        raise InvalidArgument(
            f"files: {file.name!r} is of {file.family!r}; a load has {', '.join(sorted(_KNOWN))}"
        )
    check_file_name("files", file.name)
    if file.size > LOAD_FILE_BYTES_MAX:
        raise InvalidArgument(
            f"files: {file.name!r} has {file.size} bytes; the limit is {LOAD_FILE_BYTES_MAX}"
        )
    if file.entries < 1:
        raise InvalidArgument(f"files: {file.name!r} has no entries; leave it out")


def _check_ranges(files: Sequence[StagedFile], low: bytes, high: bytes) -> None:
    """Check that each file is within the range, and after the one before it."""
    width = len(low)
    for file in files:
        for _, key in _ends([file], width):
            if not low <= key <= high:
                raise _outside(file, key)
        low = (int.from_bytes(file.last_key) + 1).to_bytes(width)


def _ends(files: Sequence[StagedFile], width: int) -> Iterator[tuple[StagedFile, bytes]]:
    """The first and the last key of each file, which must have that width."""
    for file in files:
        for key in (file.first_key, file.last_key):
            if len(key) != width:
                raise InvalidArgument(
                    f"files: {file.name!r} has a key of {len(key)} bytes; in {file.family} it has "
                    f"{width}"
                )
            yield file, key


def _check_count(what: str, files: Sequence[StagedFile], count: int) -> None:
    found = sum(file.entries for file in files)
    if found != count:
        raise InvalidArgument(f"files: those of {what} have {found} entries, not {count}")


def _check_runs(what: str, files: Sequence[StagedFile], items: int) -> None:
    """Check that there may be so many items: an entry is about a run of one or more."""
    found = sum(file.entries for file in files)
    if not -(-items // BLOCK_ITEMS_MAX) <= found <= items:
        raise InvalidArgument(f"files: those of {what} have {found} entries for {items} items")


def _outside(file: StagedFile, key: bytes) -> InvalidArgument:
    return InvalidArgument(
        f"files: {file.name!r} of {file.family} has the key {key.hex()}, outside of the range that "
        "the part was given"
    )


def check_file_name(field: str, name: str) -> None:
    if not FILE_NAME.fullmatch(name):
        raise InvalidArgument(
            f"{field}: {name[:80]!r} is no name for a file; use up to 64 small letters, digits, "
            "dashes and underscores, then .sst"
        )


def check_partition(partition: int) -> None:
    if not 0 <= partition < PARTITIONS_MAX:
        raise InvalidArgument(
            f"partition: {partition} is too high; it must be 0 to {PARTITIONS_MAX - 1}"
        )
