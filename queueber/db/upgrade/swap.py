"""Put the upgraded store in the place of the old one; a kill at any point loses nothing.

Everything happens inside the data directory: that may be a mount point, which cannot be renamed,
and so the lock on its file `LOCK` holds from the first look to the last rename. The folders in it
say how far the upgrade is. Each appears by one rename, and is synced before the next step:

    upgrade-unfinished     new stores while they are made; the old store is whole, in its place
    upgraded-from-4        the new store, whole: from now on the swap goes on, never back
    format-4-unfinished    files of the old store that have moved out
    format-4               the old store, whole; files of the new one move into its place

When the last file is in its place, `upgraded-from-4` is deleted: that ends the swap. While it
exists, neither store is in its place, and everybody but the upgrade refuses the directory.
"""

import re
import shutil
from pathlib import Path

from queueber.errors import StorageCorrupt
from queueber.files import sync

UNFINISHED = "upgrade-unfinished"
REPORT = "upgrade-report.txt"
"""What the upgrade has to tell: first in the new store's folder, in the end in the old one's."""

_UPGRADED = re.compile(r"upgraded-from-(\d+)")
_STORE_FILES = re.compile(
    r"CURRENT|IDENTITY|LOG(\.old\.\d+)?|MANIFEST-\d+|OPTIONS-\d+(\.dbtmp)?|\d{6,}\.(log|sst|dbtmp)"
    r"|SYNCED(\.new)?|rocksdict-config\.json|loads"
)
"""What moves out. `LOCK` stays: it is held. Anything else was put there by somebody else."""


class UpgradeInterrupted(StorageCorrupt):
    """An upgrade was killed while it swapped the stores; the next one goes on with it."""


def is_interrupted(data: Path) -> bool:
    """Whether neither the old store nor the new one is in its place."""
    return _under_way(data) is not None


def refuse_interrupted(data: Path) -> None:
    if is_interrupted(data):
        raise UpgradeInterrupted(
            f"an upgrade of the store in {data} was interrupted; run 'queueber upgrade' again: it "
            "goes on from there, and nothing is lost"
        )


def kept_folder(data: Path, number: int) -> Path:
    """Where the old store is kept."""
    return data / f"format-{number}"


def begin_swap(data: Path, new: Path, number: int) -> None:
    """From here on `finish_swap` puts the store `new` in the place of the one of format `number`.

    `new` is closed, and on the disk of `data`.
    """
    for file in new.rglob("*"):
        sync(file)
    sync(new)
    _move(new, data / f"upgraded-from-{number}")
    sync(data)


def finish_swap(data: Path) -> tuple[Path, list[str]] | None:
    """Do what is left of a swap; returns where the old store is, and the report.

    None if no swap is under way.
    """
    found = _under_way(data)
    if found is None:
        return None
    new, number = found
    kept = kept_folder(data, number)
    if not kept.is_dir():
        _move_out(data, kept)
    _move_in(data, new, kept)
    shutil.rmtree(new)
    sync(data)
    return kept, (kept / REPORT).read_text().splitlines()


def _under_way(data: Path) -> tuple[Path, int] | None:
    """The folder of the new store, and the number of the old one's format."""
    if not data.is_dir():
        return None
    for entry in data.iterdir():
        if match := _UPGRADED.fullmatch(entry.name):
            return entry, int(match[1])
    return None


def _move_out(data: Path, kept: Path) -> None:
    leaving = kept.with_name(f"{kept.name}-unfinished")
    leaving.mkdir(exist_ok=True)
    sync(data)
    files = [file for file in data.iterdir() if _STORE_FILES.fullmatch(file.name)]
    # An earlier version, too, refuses a directory without CURRENT, but with SYNCED.
    for file in _ordered(files, first="CURRENT", last="SYNCED"):
        _move(file, leaving / file.name)
    sync(leaving)
    sync(data)
    _move(leaving, kept)
    sync(data)


def _move_in(data: Path, new: Path, kept: Path) -> None:
    if (new / REPORT).is_file():
        _move(new / REPORT, kept / REPORT)
    files = [file for file in new.iterdir() if file.name != "LOCK"]
    for file in _ordered(files, first="SYNCED", last="CURRENT"):
        if file.name == "CURRENT":
            sync(data)  # what it refers to must not come after it
        _move(file, data / file.name)
    for folder in (kept, new, data):
        sync(folder)


def _ordered(files: list[Path], *, first: str, last: str) -> list[Path]:
    return sorted(files, key=lambda file: (file.name == last, file.name != first, file.name))


def _move(old: Path, new: Path) -> None:
    old.rename(new)
