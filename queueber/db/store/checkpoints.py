"""Checkpoints: copies of the store at one moment, of which the files are read for a backup.

    checkpoints/<name>/<file>

Their files are links to those of the store. So they take no space at first, and keep what a later
compaction replaces.
"""

import os
import shutil
from hashlib import sha256
from pathlib import Path

from queueber.errors import Unavailable
from queueber.limits import KIB
from queueber.model import BackupFile

_FINAL = ".sst"
"""RocksDB never changes these files once they are written."""
_TAIL_BYTES = 8 * KIB
_FINGERPRINT_BYTES = 16


class Checkpoints:
    def __init__(self, path: Path) -> None:
        self._path = path

    def directory(self, name: str) -> Path:
        return self._path / name

    def files(self, name: str) -> list[BackupFile]:
        """Opens every file: takes some 20 µs each. May run in another thread."""
        try:
            return [_described(file) for file in sorted(self.directory(name).iterdir())]
        except OSError as error:
            raise _unreadable(error) from error

    def read(self, name: str, file: str, offset: int, count: int) -> bytes:
        """May run in another thread."""
        try:
            opened = os.open(self.directory(name) / file, os.O_RDONLY)
            try:
                return os.pread(opened, count, offset)
            finally:
                os.close(opened)
        except OSError as error:
            raise _unreadable(error) from error

    def remove(self, name: str) -> None:
        """May run in another thread."""
        shutil.rmtree(self.directory(name), ignore_errors=True)

    def names(self) -> list[str]:
        """All that is there; after a start, what a crash has left."""
        return sorted(entry.name for entry in self._path.iterdir()) if self._path.is_dir() else []


def _described(file: Path) -> BackupFile:
    size = file.stat().st_size
    is_final = file.suffix == _FINAL
    return BackupFile(file.name, size, is_final, _fingerprint(file, size) if is_final else b"")


def _fingerprint(file: Path, size: int) -> bytes:
    """A digest of the end of the file.

    RocksDB writes there who made the file: a random number of the process that had the store open,
    and the number of the file; and the checksums of what the file begins with. So two files differ
    in their ends if they differ anywhere, even if one is of a store that was restored.
    """
    with file.open("rb") as opened:
        opened.seek(max(0, size - _TAIL_BYTES))
        tail = opened.read()
    return sha256(size.to_bytes(8) + tail).digest()[:_FINGERPRINT_BYTES]


def _unreadable(error: OSError) -> Unavailable:
    return Unavailable(
        f"the files of the backup cannot be read ({error.strerror}); look at the server's disk, "
        "and begin another backup"
    )
