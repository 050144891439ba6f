"""A repository in a directory."""

import contextlib
import fcntl
import os
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path

from queueber.errors import Aborted, InvalidArgument, NotFound, QueueberError
from queueber.files import sync
from queueber.limits import MIB

_UNFINISHED = ".unfinished"
_LOCK = "lock"
_READ_BYTES = MIB


class DirectoryStorage:
    def __init__(self, path: Path, *, must_exist: bool = False) -> None:
        if path.exists() and not path.is_dir():
            raise InvalidArgument(f"repository: {path} is not a directory")
        if must_exist and not path.is_dir():
            raise InvalidArgument(f"repository: there is no directory {path}")
        self.address = str(path)
        self._path = path

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        self._path.mkdir(parents=True, exist_ok=True)
        with (self._path / _LOCK).open("ab") as file:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise Aborted(
                    f"another process writes into the repository {self.address}; try again when it "
                    "has ended"
                ) from error
            for left in self._path.rglob(f"*{_UNFINISHED}"):
                left.unlink()
            yield

    def write(self, path: str, chunks: Iterable[bytes]) -> str:
        file = self._path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        made = file.with_name(file.name + _UNFINISHED)
        digest = sha256()
        try:
            with made.open("wb") as opened:
                for chunk in chunks:
                    digest.update(chunk)
                    opened.write(chunk)
                opened.flush()
                os.fsync(opened.fileno())
                # So that the check reads what is on the disk, and not what is in memory.
                os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            if _digest(made) != digest.hexdigest():
                raise QueueberError(f"{file} was written, but reads back as something else")
            made.replace(file)
        finally:
            made.unlink(missing_ok=True)
        sync(file.parent)
        return digest.hexdigest()

    def read(self, path: str) -> Iterator[bytes]:
        return _chunks(self._path / path)

    def sizes(self, folder: str) -> dict[str, int]:
        files = (each for each in (self._path / folder).rglob("*") if each.is_file())
        return {
            str(file.relative_to(self._path)): file.stat().st_size
            for file in files
            if not file.name.endswith(_UNFINISHED)
        }

    def delete(self, path: str) -> None:
        file = self._path / path
        file.unlink(missing_ok=True)
        # A folder that is not empty stays.
        with contextlib.suppress(OSError):
            file.parent.rmdir()


def _chunks(file: Path) -> Iterator[bytes]:
    try:
        with file.open("rb") as opened:
            while chunk := opened.read(_READ_BYTES):
                yield chunk
    except FileNotFoundError as error:
        raise NotFound(f"there is no file {file}") from error


def _digest(file: Path) -> str:
    digest = sha256()
    for chunk in _chunks(file):
        digest.update(chunk)
    return digest.hexdigest()
