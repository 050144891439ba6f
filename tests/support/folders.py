"""Folders for stores that live for one test."""

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

_MEMORY = Path("/dev/shm")


def quick_folder() -> Path:
    """A new folder where syncing costs nothing, for tests that open stores by the hundred."""
    return Path(tempfile.mkdtemp(prefix="queueber-", dir=_MEMORY if _MEMORY.is_dir() else None))


def remove_folder(folder: Path) -> None:
    """Of a store that was closed, though RocksDB may still delete files of snapshots in it."""
    shutil.rmtree(folder, ignore_errors=True)


def copy_open_store(source: Path, target: Path) -> None:
    """Copy a store's files as they are while it is open: what a killed process leaves."""
    for _ in range(50):
        before = _files(source)
        try:
            shutil.copytree(source, target)
        except shutil.Error:
            # RocksDB deleted an obsolete file under our hands; the next copy finds it gone.
            shutil.rmtree(target)
            continue
        if _files(source) == before:
            return
        # It compacted meanwhile: a manifest of after it does not go with the files of before.
        shutil.rmtree(target)
    raise AssertionError(f"{source} did not stand still")


def _files(folder: Path) -> dict[Path, int]:
    """All files but its own diary, with their sizes."""
    found = {}
    for within, _, names in os.walk(folder):  # which, unlike rglob, bears folders that go
        for name in names:
            if not name.startswith("LOG"):
                with contextlib.suppress(FileNotFoundError):
                    found[Path(within, name)] = Path(within, name).stat().st_size
    return found
