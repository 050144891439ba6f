"""Restore: the files of a backup as a data directory; and check that they are as they were."""

import os
import shutil
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

from queueber.backup.manifest import Manifest, StoredFile
from queueber.backup.repository import Repository
from queueber.backup.take import Show
from queueber.errors import InvalidArgument, NotFound, StorageCorrupt
from queueber.files import sync

UNFINISHED = "restore-unfinished"
"""The folder in the data directory in which the store is put together. With it in it, the server
does not take the directory for a store, nor for an empty one."""

_LAST = "CURRENT"
"""RocksDB takes the files for a store once this one is there."""


def check_empty(folder: Path) -> None:
    """Raise unless a store may be restored into the folder."""
    if folder.exists() and not folder.is_dir():
        raise InvalidArgument(f"{folder} is not a directory")
    found = sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []
    others = [name for name in found if name not in {UNFINISHED, "lost+found"}]
    if others:
        raise InvalidArgument(
            f"{folder} is not empty: it has {others[0]!r}; restore into a new or empty directory"
        )


def restore(
    repository: Repository,
    manifest: Manifest,
    folder: Path,
    *,
    check: Callable[[Path], None],
    show: Show = lambda _done, _total: None,
) -> None:
    """Make the folder the data directory that was backed up.

    Every file is compared with its checksum, and then `check` looks at the whole store: if either
    raises, the folder is left empty.
    """
    check_empty(folder)
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / UNFINISHED
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir()
    try:
        for file, chunks in _checked(repository, manifest, show):
            with (made / file.name).open("wb") as opened:
                opened.writelines(chunks)
                opened.flush()
                os.fsync(opened.fileno())
        check(made)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
    for entry in sorted(made.iterdir(), key=lambda entry: entry.name == _LAST):
        entry.rename(folder / entry.name)
    made.rmdir()
    sync(folder)


def verify(
    repository: Repository, manifest: Manifest, show: Show = lambda _done, _total: None
) -> list[str]:
    """What is damaged or missing in a backup; reads all of it."""
    damage: list[str] = []
    for file, chunks in _checked(repository, manifest, show):
        try:
            for _ in chunks:
                pass
        except (StorageCorrupt, NotFound) as error:
            damage.append(f"{file.name}: {error.sentence}")
    return damage


def _checked(
    repository: Repository, manifest: Manifest, show: Show
) -> Iterator[tuple[StoredFile, Iterator[bytes]]]:
    """Every file with its chunks, which raise `StorageCorrupt` in the end if they are not as the
    manifest says."""
    done, total = 0, manifest.bytes

    def chunks_of(file: StoredFile) -> Iterator[bytes]:
        nonlocal done
        digest, size = sha256(), 0
        for chunk in repository.storage.read(file.stored):
            digest.update(chunk)
            size += len(chunk)
            done += len(chunk)
            yield chunk
            show(done, total)
        where = f"{file.stored} of {repository.address}"
        if size != file.bytes:
            raise StorageCorrupt(f"{where} is damaged: it has {size} bytes, not {file.bytes}")
        if digest.hexdigest() != file.sha256:
            raise StorageCorrupt(f"{where} is damaged: its checksum is another one")

    for file in manifest.files:
        yield file, chunks_of(file)
