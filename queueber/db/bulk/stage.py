"""The stage: where the files of loads wait beside the store until they are taken in.

    loads/<load>/token             what whoever can read it may prove
    loads/<load>/<part>/<file>

It knows nothing of what the files hold; see `sst.py` for that.
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
        """Have the directory of a load, whether it is new or not."""
        directory = self.directory(load)
        with _refusals():
            directory.mkdir(parents=True, exist_ok=True)
            token = directory / TOKEN_FILE
            # One that a full disk cut short is written again.
            if not token.exists() or token.stat().st_size != len(load.token):
                token.write_bytes(load.token)

    def write(self, load: LoadRecord, ref: PartRef, name: str, offset: int, data: bytes) -> None:
        """Put bytes of a file where they belong. May be repeated, and come in any order."""
        if offset + len(data) > LOAD_FILE_BYTES_MAX:
            raise InvalidArgument(
                f"offset: {name!r} would have {offset + len(data)} bytes; the limit of a file is "
                f"{LOAD_FILE_BYTES_MAX}"
            )
        directory = self.directory(load) / part_directory(ref)
        with _refusals():
            # The load's own may be missing, too: a crash came before it was made.
            directory.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(directory / name, os.O_WRONLY | os.O_CREAT, 0o644)
            try:
                written = 0
                # A disk that is nearly full takes a part of them, and refuses the rest.
                while written < len(data):
                    written += os.pwrite(descriptor, data[written:], offset + written)
            finally:
                os.close(descriptor)

    def check_same(
        self, load: LoadRecord, ref: PartRef, name: str, offset: int, data: bytes
    ) -> None:
        """Refuse bytes that would change a file of a part which was checked already."""
        path = self.directory(load) / part_directory(ref) / name
        with _refusals():
            found = _read_at(path, offset, len(data)) if path.is_file() else None
        if found != data:
            raise Aborted(
                f"part: attempt {ref.attempt!r} at partition {ref.partition} is finished, and "
                f"{name!r} would change; stage it as another attempt"
            )

    def check(self, load: LoadRecord, ref: PartRef, files: Sequence[StagedFile]) -> None:
        """Hold the files of a part against what is said of them, and make them durable.

        Reads all of them: may run in a thread of its own.
        """
        directory = self.directory(load) / part_directory(ref)
        with _refusals():
            check_files(directory, files)
            for file in files:
                _sync(directory / file.name)
            if files:
                # The entry of each in the one above it, up to the store's own.
                for above in (directory, directory.parent, self._path, self._path.parent):
                    _sync(above)

    def remove(self, directory: str) -> None:
        """Of a load that has ended, though a task that does not know it may still write files."""
        gone = self._path / (directory + _GONE)
        with contextlib.suppress(OSError):
            # Whoever opens another file finds no directory: it cannot fill while it is emptied.
            (self._path / directory).rename(gone)
        shutil.rmtree(gone, ignore_errors=True)

    def others(self, known: Collection[str]) -> list[str]:
        """The directories of loads that are not known any more."""
        if not self._path.is_dir():
            return []
        return sorted({entry.name for entry in self._path.iterdir()} - set(known))


@contextlib.contextmanager
def _refusals() -> Iterator[None]:
    """What the disk does not let us do may be tried again, as with the store."""
    try:
        yield
    except QueueberError:
        raise
    except Exception as error:  # RocksDB's errors, in whose hands files are checked, have no type
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
