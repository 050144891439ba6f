"""The stage: the directory of files that loads have brought and not committed yet.

    loads/<load>/token             a secret: who can read it shares the server's disk
    loads/<load>/<part>/<file>

See `sst.py` for what is in the files.
"""

import contextlib
import errno
import os
import shutil
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from queueber.db.bulk.sst import check_files
from queueber.db.records.loads import LoadRecord, part_directory
from queueber.errors import Aborted, InvalidArgument, QueueberError, Unavailable
from queueber.limits import LOAD_FILE_BYTES_MAX
from queueber.model import PartRef, StagedFile

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
            check_files(directory, files)
            for file in files:
                _sync(directory / file.name)
            if files:
                # Directories, too: each holds the name of the one below it.
                for above in (directory, directory.parent, self._path, self._path.parent):
                    _sync(above)

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


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
