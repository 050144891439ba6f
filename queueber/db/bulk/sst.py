"""SST files: sorted entries that RocksDB can add to a store as one file.

Tasks build them where their rows are. The server reads them only to check them before it adds them.
"""

import contextlib
import os
import shutil
import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import rocksdict

from queueber.db.families import Family
from queueber.db.store.options import family_options
from queueber.errors import InvalidArgument
from queueber.limits import MIB
from queueber.model import StagedFile

CLAIMS = "claims"
"""The kind of files that list which item has which key, to find duplicates; not a family."""

_READ_BYTES = MIB


class SstWriter:
    """Builds one file. Keys must come in order."""

    def __init__(self, path: Path, family: str) -> None:
        options = family_options(Family.KEYS if family == CLAIMS else _FAMILIES[family])
        self._raw = rocksdict.SstFileWriter(options)
        self._raw.open(str(path))
        self._path = path
        self._family = family
        self._entries = 0
        self._first_key = self._last_key = b""

    def put_many(self, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        """There is a value for each key."""
        # A loop in C: an entry costs a third less.
        deque(map(self._raw.__setitem__, keys, values), maxlen=0)
        if not self._entries:
            self._first_key = keys[0]
        self._entries += len(keys)
        self._last_key = keys[-1]

    def size(self) -> int:
        """The bytes that the file has so far."""
        return int(self._raw.file_size())

    def finish(self) -> StagedFile:
        """Complete the file, and sync it."""
        self._raw.finish()
        return StagedFile(
            self._path.name,
            self._family,
            self._path.stat().st_size,
            self._entries,
            file_crc32(self._path),
            self._first_key,
            self._last_key,
        )


_FAMILIES = {family.family_name: family for family in Family}


def file_crc32(path: Path) -> int:
    checksum = 0
    with path.open("rb") as file:
        while chunk := file.read(_READ_BYTES):
            checksum = zlib.crc32(chunk, checksum)
    return checksum


def check_files(directory: Path, files: Sequence[StagedFile]) -> None:
    """Compare files with their descriptions; `InvalidArgument` names the first that differs.

    Reads all of every file, so it takes long for large ones. May run in another thread.
    """
    for file in files:
        path = directory / file.name
        if not path.is_file():
            raise InvalidArgument(f"files: {file.name!r} was announced, but is not there")
        if path.stat().st_size != file.size:
            raise InvalidArgument(
                f"files: {file.name!r} has {path.stat().st_size} bytes, not {file.size}"
            )
        if file_crc32(path) != file.crc32:
            raise InvalidArgument(f"files: {file.name!r} does not have the announced checksum")
    with _opened([directory / file.name for file in files], directory / "scratch") as database:
        live = sorted(database.live_files(), key=lambda file: str(file["name"]))
    for file, found in zip(files, live, strict=True):
        entries = found["num_entries"] - found["num_deletions"]
        first_key, last_key = found["start_key"], found["end_key"]
        if (entries, first_key, last_key) != (file.entries, file.first_key, file.last_key):
            raise InvalidArgument(
                f"files: {file.name!r} has {entries} entries from {first_key.hex()} to "
                f"{last_key.hex()}, not {file.entries} from {file.first_key.hex()} to "
                f"{file.last_key.hex()}"
            )


def walk_files(paths: Sequence[Path], scratch: Path) -> Iterator[tuple[bytes, bytes]]:
    """The entries of all files in order of key; `scratch` is a directory to create and remove."""
    with _opened(paths, scratch) as database:
        yield from database.items()


@contextlib.contextmanager
def _opened(paths: Sequence[Path], scratch: Path) -> Iterator[Any]:
    """A store of links to some files: rocksdict has no other way to read them."""
    shutil.rmtree(scratch, ignore_errors=True)
    options = rocksdict.Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_disable_auto_compactions(True)
    options.set_max_open_files(64)
    options.set_keep_log_file_num(1)
    linked = rocksdict.IngestExternalFileOptions()
    linked.set_move_files(True)
    database = rocksdict.Rdict(str(scratch), options)
    try:
        for number, path in enumerate(paths):
            link = scratch / f"{number}.link"
            os.link(path, link)
            try:
                database.ingest_external_file([str(link)], linked)
            except Exception as error:
                raise InvalidArgument(
                    f"files: {path.name!r} cannot be read as an SST file ({str(error).strip()})"
                ) from error
        yield database
    finally:
        database.close()
        shutil.rmtree(scratch, ignore_errors=True)
