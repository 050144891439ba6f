"""The files of loads: SST files, which are sorted entries that RocksDB can add to a store as one.

Tasks build them where their rows are. The server reads them only to check them before it adds them.
The stage is the directory of those that are not committed yet:

    loads/<load>/token             a secret: who can read it shares the server's disk
    loads/<load>/<part>/<file>
    loads/<load>-<random>.scratch  links to files that are being read
"""

import contextlib
import errno
import os
import shutil
import zlib
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from secrets import token_hex
from typing import Any

import rocksdict

from queueber.db.families import Family
from queueber.db.records.loads import LoadRecord, part_directory
from queueber.db.store.options import family_options
from queueber.errors import Aborted, InvalidArgument, QueueberError, Unavailable
from queueber.files import sync
from queueber.limits import LOAD_FILE_BYTES_MAX, MIB
from queueber.model import Part, PartRef, StagedFile

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

    def put(self, key: bytes, value: bytes) -> None:
        self._raw[key] = value
        if not self._entries:
            self._first_key = key
        self._entries += 1
        self._last_key = key

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


def check_files(directory: Path, files: Sequence[StagedFile], scratch: Path) -> None:
    """Compare files with their descriptions; `InvalidArgument` names the first that differs.

    `scratch` is a directory to create and remove. Reads all of every file, so it takes long for
    large ones. May run in another thread.
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
    with _opened([directory / file.name for file in files], scratch) as database:
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


# --- the stage ------------------------------------------------------------------------------------

TOKEN_FILE = "token"
_GONE = ".gone"


class Stage:
    def __init__(self, path: Path) -> None:
        self._path = path

    def directory(self, load: LoadRecord) -> Path:
        return (self._path / load.directory).absolute()

    def prepare(self, load: LoadRecord) -> None:
        """Create the directory of a load, if it does not exist."""
        directory = self.directory(load)
        with _refusals():
            directory.mkdir(parents=True, exist_ok=True)
            token = directory / TOKEN_FILE
            # A full disk may have cut the token short: then it is written again.
            if not token.exists() or token.stat().st_size != len(load.token):
                token.write_bytes(load.token)

    def write(self, load: LoadRecord, ref: PartRef, name: str, offset: int, data: bytes) -> None:
        """Write bytes of a file at an offset. Calls may be repeated, and come in any order."""
        if offset + len(data) > LOAD_FILE_BYTES_MAX:
            raise InvalidArgument(
                f"offset: {name!r} would have {offset + len(data)} bytes; the limit of a file is "
                f"{LOAD_FILE_BYTES_MAX}"
            )
        directory = self.directory(load) / part_directory(ref)
        with _refusals():
            # After a crash the load's own directory may be missing, too.
            directory.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(directory / name, os.O_WRONLY | os.O_CREAT, 0o644)
            try:
                written = 0
                # A nearly full disk writes some of the bytes, and refuses the rest.
                while written < len(data):
                    written += os.pwrite(descriptor, data[written:], offset + written)
            finally:
                os.close(descriptor)

    def check_same(
        self, load: LoadRecord, ref: PartRef, name: str, offset: int, data: bytes
    ) -> None:
        """Raise if the bytes differ from those of a file whose part is already finished."""
        path = self.directory(load) / part_directory(ref) / name
        with _refusals():
            found = _read_at(path, offset, len(data)) if path.is_file() else None
        if found != data:
            raise Aborted(
                f"part: attempt {ref.attempt!r} at partition {ref.partition} is finished, and "
                f"{name!r} would change; stage it as another attempt"
            )

    def check(self, load: LoadRecord, ref: PartRef, files: Sequence[StagedFile]) -> None:
        """Compare the files of a part with their descriptions, and sync them.

        Reads all of every file. May run in another thread.
        """
        directory = self.directory(load) / part_directory(ref)
        with _refusals():
            check_files(directory, files, self._scratch(load))
            for file in files:
                sync(directory / file.name)
            if files:
                # Directories, too: each holds the name of the one below it.
                for above in (directory, directory.parent, self._path, self._path.parent):
                    sync(above)

    def entries(
        self, load: LoadRecord, part: Part, family: Family
    ) -> Iterator[tuple[bytes, bytes]]:
        """The entries of a part's files of a family, in order of key. May run in another thread."""
        directory = self.directory(load) / part_directory(part.ref)
        paths = [directory / file.name for file in part.files if file.family == family.family_name]
        with _refusals():
            yield from walk_files(paths, self._scratch(load))

    def _scratch(self, load: LoadRecord) -> Path:
        # Not inside the load's own directory: RocksDB would create that again if it was removed
        # meanwhile, and nobody would remove it a second time.
        return self._path / f"{load.directory}-{token_hex(4)}.scratch"

    def remove(self, directory: str) -> None:
        """Remove the directory of a load that has ended. Late tasks may still write into it."""
        gone = self._path / (directory + _GONE)
        with contextlib.suppress(OSError):
            # Under another name no task finds it, so nobody fills it while it is emptied.
            (self._path / directory).rename(gone)
        shutil.rmtree(gone, ignore_errors=True)

    def others(self, known: Collection[str]) -> list[str]:
        """The names of directories that belong to no known load."""
        if not self._path.is_dir():
            return []
        return sorted({entry.name for entry in self._path.iterdir()} - set(known))


@contextlib.contextmanager
def _refusals() -> Iterator[None]:
    """Turn errors of the disk into `Unavailable`: the call may be repeated."""
    try:
        yield
    except QueueberError:
        raise
    except Exception as error:  # RocksDB, which reads the files, has no type of error
        if getattr(error, "errno", None) == errno.ENOSPC or "No space left" in str(error):
            raise Unavailable(
                "the disk of the data directory is full; make room, then send the call again"
            ) from error
        raise Unavailable(
            f"the files of the load cannot be read or written ({str(error).strip()}); look at the "
            "server's disk"
        ) from error


def _read_at(path: Path, offset: int, count: int) -> bytes:
    with path.open("rb") as file:
        file.seek(offset)
        return file.read(count)
